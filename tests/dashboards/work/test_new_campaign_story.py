"""What a campaign would cost, as far as anybody can know before it starts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ldfi.dashboards.work.new_campaign_story import Known, Past, Plan, plan
from ldfi.experiments.domain.campaign.calendar import Calendar
from ldfi.experiments.domain.campaign.campaign import Definition
from ldfi.experiments.domain.gates.feasibility import Flow, estimate
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.scheduler.forecast import Forecast

HOUR = 3_600.0
MONDAY = 1_764_547_200.0
"""2025-12-01 00:00 UTC."""
TANK, GATE = "pump>http:PUT:tank/levels/*", "pump>db:UPDATE:sluicedb/gates"
LOCKS = Known(
    "GET /locks",
    [[f"refused@{TANK}"], [f"delay@{TANK}"], [f"error@{GATE}", f"refused@{TANK}"]],
    True,
    {TANK: "tank", GATE: "sluicedb"},
    [TANK, GATE],
)


def planned(known: list[Known], past: Past | None = None, rate: float = 50.0, **given: Any) -> Plan:
    windows, calendar = given.pop("windows", []), given.pop("calendar", None)
    settings = Settings(**{"treatment": 0.1, "control": 0.4, **given})
    estimates = tuple(estimate(settings, Flow(each.name, rate)) for each in known if rate)
    forecast = Forecast(Definition(settings, calendar=calendar), estimates, None, None)
    return plan(forecast, known, past or Past(), 4_000, 5_000, windows, MONDAY)


def test_questions_are_those_within_its_bounds() -> None:
    both = planned([LOCKS])
    assert (both.alone, both.together, both.at_least) == (2, 1, False)
    assert (planned([LOCKS], max_size=1).together, planned([LOCKS], max_size=3).at_least) == (
        0,
        True,
    )
    assert planned([LOCKS], kinds=("error",)).alone == 1
    assert planned([LOCKS], kinds=("error", "status:500")).at_least
    assert planned([replace(LOCKS, all=False)]).at_least


def test_questions_are_asked_in_words_single_failures_first() -> None:
    assert planned([LOCKS]).asks == [
        "Does GET /locks go well while tank is slow?",
        "Does GET /locks go well while tank does not answer?",
        "Does GET /locks go well while sluicedb fails and tank does not answer?",
    ]


def test_how_many_are_hurt_is_said_from_the_past_and_never_above_the_promise() -> None:
    assert planned([LOCKS]).hurt is None
    assert planned([LOCKS], Past(10, 25)).hurt == 8  # two and a half for each of three questions
    assert planned([LOCKS], Past(10, 25), member_budget=5).hurt == 5


def test_it_ends_when_all_its_questions_have_had_their_time() -> None:
    one = planned([LOCKS]).ends
    assert one is not None and one > MONDAY
    two = planned([LOCKS, replace(LOCKS, name="GET /gates")], concurrency=1).ends
    assert two is not None
    assert abs((two - MONDAY) - 2 * (one - MONDAY)) < 1
    night = planned([LOCKS], calendar=Calendar("UTC", (), ("09:00", "16:00"))).ends
    assert night is not None
    assert abs((night - MONDAY) - (9 * HOUR + one - MONDAY)) < 1


def test_where_nothing_can_be_known_it_says_so() -> None:
    unseen = planned([LOCKS], rate=0.0)
    assert unseen.ends is None and not unseen.slow
    slow = planned([LOCKS], rate=0.001)
    assert slow.ends is None
    assert slow.slow == ["GET /locks"]
    nothing = planned([])
    assert (nothing.questions, nothing.asks, nothing.ends) == (0, [], None)


def test_what_is_under_maintenance_waits() -> None:
    window = Maintenance("m", "ann", "rolling upgrade", ("sluicedb",), MONDAY, MONDAY + HOUR)
    other = Maintenance("n", "ann", "upgrade", ("elsewhere",), MONDAY, MONDAY + HOUR)
    assert planned([LOCKS], windows=[window, other]).waits == [
        "GET /locks waits until the maintenance of sluicedb is over: rolling upgrade."
    ]


def test_on_a_few_first_is_as_many_as_can_decide() -> None:
    assert planned([LOCKS]).first == Settings().min_samples
    assert planned([LOCKS], members=4).first == 4
