"""With 60 services and 10,000 experiments each page answers its question within one screen."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pytest
from playwright.sync_api import Browser
from sqlalchemy import insert, select

from ldfi.experiments.store import Database
from ldfi.experiments.store.schema import ExperimentRow
from ldfi.testing.programs import Call
from tests.dashboards.browser import large
from tests.dashboards.browser.pages import PAGES
from tests.dashboards.seeded import PROGRAMS, Seeded, alive, crowd, seed
from tests.kit.browser import DESK, Watched, in_sight, watching

pytestmark = [pytest.mark.servers, pytest.mark.timeout(400)]  # browsers are slow on a busy machine
SERVICES, POINTS, EXPERIMENTS = 60, 300, 10_000
EVERYTHING: Final = "on-everything"

ANSWERS: Final[Mapping[str, tuple[str, ...]]] = {
    "now": ("experiments in 24 h", "Was it us?", "What hurts most"),
    "was-it-us": ("Perhaps: ", "may still be injecting", "What came of it"),
    "classes": ("GET /home", "GET /boot", "Findings"),
    "class": ("sets of failures hurt", "GET /boot is lost when layout does not answer", "open"),
    "point": ("Nobody knows yet what its failure does",),
    "experiments": ("experiments have ended: ", "harmful", "survived", "is running"),
    "experiment": ("What if ", "Control against treatment", "About it"),
    "findings": ("weaknesses need somebody", "Worst first"),
    "finding": ("is lost when", "Owner", "Share of traffic", "Last seen", "What would mend it"),
    "certificates": ("questions are open, in all 4 kinds of request", "GET /home"),
    "certificate": ("complete", "Nothing within the bounds is left untested", "check"),
    "campaigns": ("Who must act", "Planned", "All campaigns"),
    "campaign": ("is over: 7 weaknesses", "What it may cost"),
    "new-campaign": ("What shall be tried, and what will it cost?", "Kinds of request"),
    "replays": ("worse",),
    "replay": ("worse", "GET /boot"),
    "calendar": ("The next run begins", "This week"),
    "map": ("78 services: 3 can each hurt users alone", "are not drawn", "license"),
    "map-down": ("If recordsdb is down", "GET /play"),
    "maintenance": ("Nothing is under maintenance", "Over"),
    "audit": ("Who did what, to what and why", "experiment tolerated"),
    "tokens": ("Made here", "copy-"),
    "halt": ("Halt everything", "Why?"),
    "search": ("license", "Weaknesses"),
}
"""What each page is asked, by what must be read there without scrolling."""


@dataclass(frozen=True, slots=True)
class Crowded:
    """A service that has a lot on record, and an experiment on everything optional."""

    url: str
    known: Seeded


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowded]:
    url = f"sqlite:///{tmp_path_factory.mktemp('crowded') / 'ldfi.sqlite3'}"
    known = seed(url)
    large.store(url, services=SERVICES, points=POINTS)
    crowd(url, EXPERIMENTS)
    home = large.program(SERVICES, POINTS)
    with alive(url, {**PROGRAMS, large.PATH: home}, requests=0) as root:
        _on_everything(url, [f"error@{point}" for point in optional(home)])
        yield Crowded(root, known)


def _on_everything(url: str, faults: list[str]) -> None:
    """Put an experiment on record that is under way somewhere else."""
    database, now = Database(url), time.time()
    with database.change(now) as change:
        ended = select(ExperimentRow).where(ExperimentRow.state == "decided").limit(1)
        row = change.session.scalars(ended).one()
        columns = {column.key: getattr(row, column.key) for column in ExperimentRow.__table__.c}
        columns |= {"id": EVERYTHING, "state": "observing", "faults": faults, "hypothesis": faults}
        columns |= {"request_class": large.CLASS, "active_class": large.CLASS, "verdict": None}
        columns |= {"created_at": now, "armed_at": now, "lease_until": now + 600}
        columns |= {"disarmed_at": None, "ended_at": None}
        change.session.execute(insert(ExperimentRow), [columns])
    database.close()


def optional(call: Call) -> Iterator[str]:
    """Stores that a request can do without."""
    for step in call.steps:
        for each in step.calls:
            if step.mode == "optional" and not each.steps:
                yield each.point
            yield from optional(each)


@pytest.fixture(scope="module")
def looking(browser: Browser, crowded: Crowded) -> Iterator[Watched]:
    with watching(browser, crowded.url, size=DESK, role="admin") as visitor:
        yield visitor


def read(visitor: Watched, path: str) -> str:
    """What is read there without scrolling; without spaces, for long names are broken."""
    return in_sight(visitor.visit(path)).replace(" ", "")


@pytest.mark.parametrize("name", PAGES)
def test_the_question_is_answered_without_scrolling(
    looking: Watched, crowded: Crowded, name: str
) -> None:
    said = read(looking, PAGES[name](crowded.known))
    if name == "now":  # which of the two, how long ago the last request of the seed came
        assert re.search(r"Nothing(isinjected\.|canbeinjected:norequestcameinfor)", said)
    assert [answer for answer in ANSWERS[name] if answer.replace(" ", "") not in said] == []


def test_an_experiment_on_everything_optional_names_three_faults(looking: Watched) -> None:
    said = read(looking, f"/experiments/{EVERYTHING}")
    assert f"and{len(set(optional(large.program(SERVICES, POINTS)))) - 3}more?" in said
    assert "Controlagainsttreatment" in said
    assert "Disarmnow" in said
