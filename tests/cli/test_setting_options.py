"""Options that are made of a setting's declaration."""

from __future__ import annotations

from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ldfi.cli.campaign import OPTIONS
from ldfi.cli.setting_options import with_settings
from ldfi.experiments.domain.settings import SETTINGS

NAMES = ("max_size", "kinds", "on_drift", "approve_above", "window", "confirm")


@pytest.fixture
def told() -> list[dict[str, Any]]:
    """What the command of these tests was given, call by call."""
    return []


@pytest.fixture
def app(told: list[dict[str, Any]]) -> typer.Typer:
    made = typer.Typer(add_completion=False)

    @made.command()
    @with_settings({"Bounds": NAMES})
    def begin(*, name: str = "", asked: dict[str, Any], late: bool = False) -> None:
        """Begin something."""
        told.append({"name": name, "late": late, **asked})

    return made


def test_what_is_given_comes_by_the_name_of_its_setting(
    app: typer.Typer, told: list[dict[str, Any]]
) -> None:
    words = "--name n --max-size 3 --kind error --kind delay --on-drift pause --no-confirm --late"
    done = CliRunner().invoke(app, [*words.split(), "--window", "7.5", "--approve-above", "0"])

    assert done.exit_code == 0, done.output
    assert told == [
        {
            "name": "n",
            "late": True,
            "max_size": 3,
            "kinds": ["error", "delay"],
            "on_drift": "pause",
            "approve_above": 0.0,
            "window": 7.5,
            "confirm": False,
        }
    ]


def test_a_list_may_have_commas(app: typer.Typer, told: list[dict[str, Any]]) -> None:
    words = ["--kind", "refused,timeout, status:500", "--kind", "delay"]

    assert CliRunner().invoke(app, words).exit_code == 0

    (given,) = told
    assert given["kinds"] == ["refused", "timeout", "status:500", "delay"]


def test_what_is_not_given_is_left_to_the_service(
    app: typer.Typer, told: list[dict[str, Any]]
) -> None:
    assert CliRunner().invoke(app, []).exit_code == 0
    assert told == [{"name": "", "late": False}]


def test_help_tells_what_was_declared(app: typer.Typer) -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output

    assert "Bounds" in shown
    for name in NAMES:
        assert SETTINGS[name].about.meaning in shown
    assert "reopen, pause or ignore." in shown
    assert "error, delay, or others" in shown
    assert "at most, in seconds." in shown
    assert "--no-confirm" in shown


def test_the_options_of_a_campaign_are_settings() -> None:
    names = [name for group in OPTIONS.values() for name in group]
    assert set(names) <= set(SETTINGS)
    assert len(set(names)) == len(names)
