"""Windows of time as people write them."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.campaign.windows import window_of, written

BERLIN, UTC = ZoneInfo("Europe/Berlin"), ZoneInfo("UTC")


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


NOW = at("2026-11-24T14:32:10+01:00")


@pytest.mark.parametrize(
    ("since", "until", "means"),
    [
        ("", "", (NOW - 900, NOW)),
        ("02:10", "02:25", (at("2026-11-24T02:10+01:00"), at("2026-11-24T02:25+01:00"))),
        ("2:10:05", "2:25", (at("2026-11-24T02:10:05+01:00"), at("2026-11-24T02:25+01:00"))),
        ("23:50", "00:10", (at("2026-11-23T23:50+01:00"), at("2026-11-24T00:10+01:00"))),
        ("15:00", "16:00", (at("2026-11-23T15:00+01:00"), at("2026-11-23T16:00+01:00"))),
        ("14:00", "", (at("2026-11-24T14:00+01:00"), NOW)),
        ("2026-11-01 02:10", "2026-11-01T02:25", (at("2026-11-01T02:10+01:00"),) * 1),
        ("2026-11-01 02:10 UTC", "2026-11-01T02:25Z", (at("2026-11-01T02:10Z"),)),
        ("2026-11-01T02:10:07.254Z", "2026-11-01T02:25:00.000Z", (at("2026-11-01T02:10:07Z"),)),
        ("2026-11-01T02:10+05:30", "2026-11-01T02:25Z", (at("2026-11-01T02:10+05:30"),)),
    ],
)
def test_a_window_as_it_is_written(since: str, until: str, means: tuple[float, ...]) -> None:
    found = window_of(since, until, BERLIN, NOW, 900)
    assert (found.since, found.until)[: len(means)] == means


@pytest.mark.parametrize(
    ("since", "until", "said"),
    [
        ("soon", "", "'soon' is no time"),
        ("25:00", "", "'25:00' is no time"),
        ("02:10 Mars", "", "'Mars' is no time zone"),
        ("2026-13-01 02:10", "", "is no time"),
        ("2026-11-24 03:00", "2026-11-24 02:00", "ends before it begins"),
    ],
)
def test_what_is_no_window_is_refused_in_words(since: str, until: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        window_of(since, until, BERLIN, NOW, 900)


def test_where_an_hour_comes_twice_a_window_has_both() -> None:
    found = window_of("2026-10-25 02:10", "2026-10-25 02:25", BERLIN, NOW, 900)
    assert found.until - found.since == 3600 + 15 * 60


@given(st.integers(0, 2**31), st.integers(1, 10**7), st.sampled_from([UTC, BERLIN]))
def test_what_is_written_is_read_as_it_was(since: int, seconds: int, tz: ZoneInfo) -> None:
    until = since + seconds
    found = window_of(written(since, tz), written(until, tz), tz, until, 900)
    assert found.since <= since  # earlier where the hour comes twice
    assert found.until >= until
    if tz is UTC:
        assert (found.since, found.until) == (since, until)
