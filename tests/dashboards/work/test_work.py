"""*Work* and *Proof*: what their pages answer, of an application that nobody has prepared."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from ldfi.experiments.domain.campaign.campaign import Definition
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import Database
from ldfi.experiments.store.schema import CampaignRow, ExperimentRow
from tests.dashboards.browsing import Browser, Markup, Site, site, text_of
from tests.dashboards.seeded import LIMITS, Seeded, harbour
from tests.dashboards.test_pages import filled_in
from tests.kit.service import service

REQUESTS = 30
ENOUGH = {"treatment": "0.4", "control": "0.4", "window": "600"}
"""With these the little traffic of a test can decide something."""


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A harbour where a campaign is paused and something under maintenance; the campaign's id."""
    url = f"sqlite:///{tmp_path_factory.mktemp('work') / 'ldfi.sqlite3'}"
    campaign = harbour(url)
    database, now = Database(url), time.time()
    scheduler = Engine(database, now=now, lease=10.0, limits=LIMITS).scheduler
    paused = scheduler.commands.start(Definition(Settings(), ("GET /locks",), "gates"), "kim", now)
    scheduler.commands.pause(paused.id, "spring tide", "kim", now + 1)
    window = Maintenance("m1", "ben", "new gates", ("sluicedb",), now - 60, now + 3600)
    scheduler.commands.open_maintenance(window, "ben", now)
    scheduler.shut_down("over", now + 1)
    database.close()
    return url, campaign


@pytest.fixture(scope="module")
def operator(explored: tuple[str, str]) -> Iterator[Browser]:
    with site(service(explored[0])) as here:
        yield here.logged_in("operator")


def answers(browser: Browser, path: str, *parts: str) -> str:
    said = text_of(browser.get(path))
    for part in parts:
        assert part in said, (part, said)
    return said


def test_work_says_what_runs_what_is_planned_and_who_must_act(operator: Browser) -> None:
    answers(
        operator,
        "/campaigns",
        "No campaign is running, and none is planned. 2 things wait for somebody.",
        "No campaign is running; 1 is paused.",
        "The maintenance of sluicedb ends by itself: new gates",
        "An operator has to resume “gates”, which is paused: spring tide",
        "“locks” is over: one weakness, and no question is open",
    )


def test_a_campaign_holds_what_it_cost_against_what_it_promised(
    operator: Browser, explored: tuple[str, str]
) -> None:
    said = answers(
        operator,
        f"/campaigns/{explored[1]}",
        "“locks” is over: one weakness, and no question is open",
        "Tries every failure and every two at once on every kind of request that is fit.",
        "At most 10,000 devices in a run, never more than 300 at once",
        "of 10,000 at most",
        "GET /locks: tank does not answer",
        "Weakness: open",
        "The same as a list",
        "what is proved of them",
    )
    hurt = re.search(r"Devices hurt (\d+) of (\d+) treated", said)
    assert hurt is not None and 0 < int(hurt[1]) <= int(hurt[2])


def test_the_line_of_open_questions_is_what_was_open_when_each_was_tried(
    seeded_file: tuple[Path, Seeded],
) -> None:
    database = Database(f"sqlite:///{seeded_file[0]}")
    with database.read() as session:
        query = select(ExperimentRow).where(
            ExperimentRow.campaign_id == seeded_file[1].campaigns["nightly"]
        )
        rows = list(session.scalars(query.order_by(ExperimentRow.created_at)))
    database.close()
    counts = [row.open_before for row in rows]
    assert None not in counts
    assert max(filter(None, counts)) >= 3
    assert counts[-1] == 0  # what comes last only checks what is known


def test_experiments_are_told_and_their_exact_names_are_there(operator: Browser) -> None:
    said = answers(
        operator,
        "/experiments",
        "harmful",
        "GET /locks: tank does not answer",
        "refused@pump>http:PUT:tank/levels/*",
        "Hurt, of those reached",
    )
    count = re.search(r"(\d+) experiments have ended: (\d+) harmful", said)
    assert count is not None and int(count[1]) >= int(count[2]) > 0


def test_what_a_campaign_would_cost_is_said_before_it_starts(operator: Browser) -> None:
    before = text_of(operator.get("/campaigns"))
    answers(
        operator,
        "/campaigns/new",
        "what will it cost?",
        "It would not start: no class can decide anything in 120 s",
        "Does GET /locks go well while sluicedb is slow?",
        "What keeps it safe",
        "GET /locks waits until the maintenance of sluicedb is over: new gates.",
        "Start on 10 devices first",
    )
    slow = {"kinds": "delay", "max_size": "1", "member_budget": "70", "members": "30"}
    form = filled_in(operator) | ENOUGH | slow
    told = operator.post("/campaigns/plan", "/campaigns/new", **form)
    assert told.status_code == 200
    said = text_of(told)
    assert "At most 70 devices take part, 30 in each experiment; about" in said, said
    assert re.search(r"if it goes as in the \d+ experiments so far", said)
    assert "Begun now, it ends about" in said
    assert 'value="70"' in told.text
    assert text_of(operator.get("/campaigns")) == before  # nothing was started


def test_a_plan_of_a_form_with_a_mistake_says_what_is_wrong(operator: Browser) -> None:
    form = filled_in(operator) | {"members": "many"}
    wrong = operator.post("/campaigns/plan", "/campaigns/new", **form)
    assert wrong.status_code == 422
    assert "Nobody can say while the form cannot be read: members:" in text_of(wrong)


def test_on_a_few_devices_first_is_a_budget_that_one_experiment_needs(operator: Browser) -> None:
    form = filled_in(operator) | ENOUGH | {"name": "carefully", "first": "yes"}
    made = operator.post("/campaigns", "/campaigns/new", **form)
    assert made.status_code == 303, text_of(made)
    to = made.headers["location"]
    answers(operator, to, "At most 10 devices in a run")
    operator.post(f"{to}/stop", to, reason="enough")


def test_proof_says_what_is_shown_assumed_open_and_doubted(operator: Browser) -> None:
    said = answers(
        operator,
        "/certificates",
        "GET /locks",
        "One set of failures hurts",
        "that more failures never help",
        "Doubted",
        "on record in a chain",
        "python -m ldfi.checker",
        "locks",
    )
    assert re.search(r"(No question is|\d+ questions? (is|are)) open", said)


def test_calendar_maintenance_and_audit_begin_with_an_answer(operator: Browser) -> None:
    assert "No run is planned" in text_of(operator.get("/calendar"))
    assert "sluicedb is under maintenance" in text_of(operator.get("/maintenance"))
    assert "GET /locks: tank does not answer" in text_of(operator.get("/audit?kind=experiment"))
    assert "No two versions were compared yet" in text_of(operator.get("/replays"))


def test_all_times_have_24_hours_and_a_zone(operator: Browser, explored: tuple[str, str]) -> None:
    for path in ("/campaigns", f"/campaigns/{explored[1]}", "/experiments", "/certificates"):
        for written in re.findall(r"<time [^>]*>([^<]*)</time>", operator.get(path).text):
            assert re.fullmatch(r"(\d{4}-\d{2}-\d{2} )?\d{2}:\d{2}(:\d{2})? UTC", written)


def test_every_mark_of_the_line_is_in_the_list_too(
    operator: Browser, explored: tuple[str, str]
) -> None:
    links = Markup(operator.get(f"/campaigns/{explored[1]}").text).every("a")
    marks = {tag["href"] for tag in links if tag.get("tabindex") == "-1"}
    assert marks
    assert marks <= {tag["href"] for tag in links if tag.get("tabindex") != "-1"}


LEFT: Mapping[str, Any] = {
    "request_class": "GET /play",
    "why": {"window over": 2},
    "named": [["delay@api>http:POST:license/keys"]],
    "silent": [],
    "unreached": {},
    "words": "2 hypotheses stay open (window over: 2)",
}


@pytest.mark.parametrize(
    ("kind", "left", "title"),
    [
        ("complete", [], "“nightly” is over: 7 weaknesses, and no question is open"),
        ("open", [LEFT], "“nightly” is over: 2 questions are open and 7 weaknesses"),
        (
            "out of time",
            [LEFT],
            "is over: the solver ran out of time, 2 questions are open and 7 weaknesses",
        ),
        ("out of budget", [LEFT], "is over: its devices are spent, 2 questions are open and 7"),
    ],
)
def test_how_it_ended_is_said_and_never_looks_better_than_it_is(
    seeded_url: str, seeded: Seeded, kind: str, left: list[Mapping[str, Any]], title: str
) -> None:
    database = Database(seeded_url)
    with database.change(time.time()) as change:
        row = change.session.get_one(CampaignRow, seeded.campaigns["nightly"])
        row.ending = {"kind": kind, "left": list(left), "held": []}
        row.reason = f"the reason for {kind}"
    database.close()
    with site(service(seeded_url)) as here:
        viewer = here.logged_in("viewer")
        said = answers(
            viewer, f"/campaigns/{seeded.campaigns['nightly']}", title, f"The reason for {kind}"
        )
        assert ("Of these nothing is known" in said) == bool(left)
        assert ("license is slow" in said) == bool(left)


def test_before_anything_was_done_every_page_says_so(nothing: Site) -> None:
    nobody = nothing.logged_in("operator")
    answers(nobody, "/campaigns", "No campaign is running, and none is planned.", "Create one")
    answers(nobody, "/experiments", "No experiment has ended yet", "Nothing has been tried yet")
    answers(nobody, "/certificates", "Nothing is shown yet", "No run is on record yet.")
    answers(nobody, "/campaigns/new", "No kind of request is fit yet")
    answers(nobody, "/maintenance", "Nothing is under maintenance")
