"""What is asked for with a campaign, from a file, options and pairs; lengths of time."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from ldfi.analysis.words import length, percent
from ldfi.cli.campaign import calendar, schedule
from ldfi.cli.durations import seconds
from ldfi.cli.settings import checked, pairs, read
from ldfi.cli.words import interval
from ldfi.errors import Invalid
from ldfi.experiments.api.new_campaign import NewCampaign


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.yaml", "max_size: 1\nclasses: ['GET /boot']\n"),
        ("c.json", '{"max_size": 1, "classes": ["GET /boot"]}'),
        ("c.toml", 'max_size = 1\nclasses = ["GET /boot"]\n'),
    ],
)
def test_a_file_is_read_by_its_ending(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)

    assert read(file) == {"max_size": 1, "classes": ["GET /boot"]}


@pytest.mark.parametrize("text", ["[", "- a\n- b\n", "\x00"])
def test_what_is_no_document_is_usage(tmp_path: Path, text: str) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text)

    with pytest.raises(typer.BadParameter, match=r"c\.yaml"):
        read(file)


def test_pairs_are_json_where_they_can_be() -> None:
    given_ = ["max_union=null", "settle=0.5", "strategy=union", 'kinds=["error"]', "name=a=b"]

    assert pairs(given_) == {
        "max_union": None,
        "settle": 0.5,
        "strategy": "union",
        "kinds": ["error"],
        "name": "a=b",
    }
    with pytest.raises(typer.BadParameter, match="NAME=VALUE"):
        pairs(["settle"])


def test_only_what_was_set_is_sent_so_the_service_keeps_its_defaults() -> None:
    assert checked(NewCampaign, {"max_size": 1}) == {"settings": {"max_size": 1}}


def test_every_fault_in_the_settings_is_named_at_once() -> None:
    with pytest.raises(Invalid) as caught:
        checked(NewCampaign, {"max_size": 9, "kinds": ["fire"], "colour": 1})

    message = str(caught.value)
    assert "max_size: must be at most 4, got 9" in message
    assert "'fire'" in message
    assert "colour: there is no such field" in message


def test_times_as_options_are_what_the_service_reads() -> None:
    open_ = calendar(
        "Europe/Berlin", "Mon, tue", "09:00-16:00", ["2026-12-18..2027-01-04=holidays"]
    )

    assert open_ == {
        "timezone": "Europe/Berlin",
        "days": ["mon", "tue"],
        "hours": ["09:00", "16:00"],
        "blackouts": [{"first": "2026-12-18", "last": "2027-01-04", "why": "holidays"}],
    }
    begins = schedule("Europe/Berlin", "0 9 * * mon")
    assert begins == {"cron": "0 9 * * mon", "timezone": "Europe/Berlin"}
    assert checked(NewCampaign, {"calendar": open_, "schedule": begins})
    assert not calendar("UTC", None, None, ())
    assert not schedule("UTC", None)


@pytest.mark.parametrize("text", ["2026-12-18", "2026-12-18..2027-01-04", "..=x"])
def test_a_blackout_needs_two_ends_and_a_reason(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="FIRST"):
        calendar(None, None, None, [text])


@given(st.integers(1, 10_000), st.sampled_from([("s", 1), ("m", 60), ("h", 3600), ("d", 86400)]))
def test_lengths_of_time_are_read_in_their_unit(count: int, unit: tuple[str, int]) -> None:
    assert seconds(f"{count}{unit[0]}", "--for") == count * unit[1]


@pytest.mark.parametrize("text", ["", "2", "2y", "-2h", "0s", "1h30m", "h"])
def test_what_is_no_length_of_time_is_usage(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="90s, 15m, 2h"):
        seconds(text, "--for")


def test_numbers_as_people_read_them() -> None:
    assert [percent(share) for share in (None, 0, 0.012, 0.5, 1)] == [
        "–",
        "0 %",
        "1.2 %",
        "50 %",
        "100 %",
    ]
    assert interval((-0.124, 0.3)) == "(−12 to 30 %)"
    assert interval((-0.001, 0.3)) == "(0 to 30 %)"
    assert [length(each) for each in (None, 0.42, 25, 200, 8000, 200_000)] == [
        "–",
        "0.4 s",
        "25 s",
        "3 min",
        "2 h",
        "2 d",
    ]
