"""What a campaign's page says of it, in every state: never more than is known."""

from __future__ import annotations

from typing import Any

import pytest

from ldfi.dashboards.work.campaign_story import does, hours, title
from ldfi.experiments.api.campaign_view import CampaignView, ClassProgress
from ldfi.experiments.domain.campaign.calendar import Calendar
from ldfi.experiments.domain.campaign.campaign import Definition
from ldfi.experiments.domain.settings import Settings

NOTHING: dict[str, Any] = {"why": {}, "named": [], "silent": [], "unreached": {}, "words": ""}


def campaign(
    state: str, *classes: tuple[int, int], ending: Any = None, run: int = 1
) -> CampaignView:
    """``classes``: questions that are open in each, and weaknesses."""
    progress = [
        ClassProgress(
            name=f"GET /{at}", version=1, finished=False, open=questions, findings=[["a"]] * found
        )
        for at, (questions, found) in enumerate(classes)
    ]
    return CampaignView(
        id="c1", name="tides", state=state, reason="", definition={}, created_by="ann",
        created_at=0.0, run=run, run_started_at=0.0, next_run_at=None, ended_at=None,
        ending=ending, classes=progress,
    )  # fmt: skip


def ended(kind: str, held: tuple[str, ...] = (), **left: Any) -> dict[str, Any]:
    rows = [{**NOTHING, "request_class": "GET /0", **left}] if left else []
    return {"kind": kind, "left": rows, "held": list(held)}


@pytest.mark.parametrize(
    ("view", "said"),
    [
        (campaign("scheduled"), "“tides” waits for its first run"),
        (campaign("scheduled", run=2), "“tides” waits for its next run"),
        (campaign("paused", (3, 0)), "“tides” is paused"),
        (campaign("running"), "“tides” waits for requests that it can explore"),
        (campaign("running", (3, 1), (1, 0)), "“tides”: 4 questions are open"),
        (campaign("running", (1, 0)), "“tides”: one question is open"),
        (campaign("stopped"), "“tides” was stopped: nothing was tried"),
        (campaign("stopped", (0, 0)), "was stopped: before its end, no weakness was found"),
        (campaign("stopped", (2, 1)), "was stopped: 2 questions are open, one weakness"),
        (
            campaign("finished", (0, 2), ending=ended("complete")),
            "is over: 2 weaknesses, and no question is open",
        ),
        (
            campaign("finished", (0, 0), ending=ended("open", unreached={"a>b": "fit"})),
            "is over: not everything could be tried and no weakness was found",
        ),
        (
            campaign("finished", (0, 0), ending=ended("open", silent=["a>b"], why={"x": 2})),
            "is over: 2 questions are open, not everything could be tried and no weakness",
        ),
        (
            campaign("finished", (0, 1), ending=ended("open", held=("GET /1",))),
            "is over: kinds of request are held that have changed and one weakness",
        ),
        (
            campaign("finished", (5, 0), ending=ended("out of budget", why={"not tried": 5})),
            "is over: its devices are spent, 5 questions are open and no weakness was found",
        ),
        (
            campaign("finished", (0, 0), ending=ended("out of time")),
            "is over: the solver ran out of time and no weakness was found",
        ),
    ],
)
def test_where_it_stands(view: CampaignView, said: str) -> None:
    assert said in title(view, 0)


def test_what_waits_for_an_approval_waits_for_you() -> None:
    assert title(campaign("running", (3, 0)), 1) == "“tides” waits for your yes"


def test_what_it_does_and_when() -> None:
    every = Definition(Settings(max_size=1))
    assert does(every) == "Tries every failure alone on every kind of request that is fit."
    some = Definition(Settings(max_size=3), ("GET /a", "GET /b"))
    assert does(some) == "Tries every failure and up to 3 at once on GET /a and GET /b."
    assert hours(None) == "at any time"
    week = Calendar("Europe/Berlin", ("mon", "tue", "wed"), ("09:00", "16:00"))
    assert hours(week) == "Monday to Wednesday, 09:00 to 16:00 (Europe/Berlin)"
    assert hours(Calendar(days=("mon", "wed", "sun"))) == "Monday, Wednesday, Sunday, all day (UTC)"
