"""The table of guards: what each says of random facts; what disarms also forbids arming."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.gates.guard_facts import BudgetLeft, Facts, Touch, touches
from ldfi.experiments.domain.gates.guards import GUARDS, Guard, Moment, objection
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.settings import Settings
from ldfi.fit.protocol.faults import Fault
from tests.experiments.simulated import BOOT

MOMENTS: tuple[Moment, ...] = ("campaign", "class", "arming", "armed")
TEXT = st.text("abcXYZ 019/*", min_size=1, max_size=20)
NAMES = st.sampled_from(["GET /", "GET /boot", "GET /pay"])
FACTS = st.builds(
    Facts,
    halted=st.none() | TEXT,
    breach=st.none() | TEXT,
    closed=st.none() | TEXT,
    edges=st.integers(0, 3),
    campaign=st.sampled_from(["running", "paused", "stopped", "not on record"]),
    request_class=NAMES,
    protected_classes=st.lists(NAMES | st.sampled_from(["*pay", "*"]), max_size=2).map(tuple),
    success_rate=st.floats(0, 1),
    outcomes=st.none() | st.integers(0, 20),
    touches=st.lists(st.builds(Touch, TEXT, TEXT, TEXT), max_size=2).map(tuple),
    running=st.integers(0, 6),
    may_run=st.integers(0, 6),
    on_class=st.none() | TEXT,
    beside=st.none() | TEXT,
    cooling=st.none() | TEXT,
    alone=st.none() | TEXT,
    unheard=st.none() | TEXT,
    budget=st.none() | st.builds(BudgetLeft, TEXT, st.integers(-5, 30), st.integers(1, 20)),
)

UPGRADE, PAYING = ("recordsdb", "ann", "upgrade"), {"request_class": "GET /pay"}


BAD: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "kill switch": ({"halted": "release"}, ("release",)),
    "guardrails": ({"breach": "guardrail does not hold: errors < 5"}, ("errors < 5",)),
    "calendar": ({"closed": "blackout until 2027-01-06"}, ("blackout until 2027-01-06",)),
    "edges": ({"edges": 0}, ("no edge",)),
    "campaign": ({"campaign": "paused"}, ("paused",)),
    "maintenance windows": ({"touches": (Touch(*UPGRADE),)}, UPGRADE),
    "protected classes": (PAYING | {"protected_classes": ("*pay",)}, ("GET /pay",)),
    "bystanders": ({"beside": "9 of 31 requests"}, ("bystanders are hurt", "9 of 31 requests")),
    "cool-down": ({"cooling": "e5"}, ("e5",)),
    "one at a time": ({"alone": "e6"}, ("e6", "hurt lately")),
    "recent outcomes": ({"outcomes": 4}, ("4 outcomes", "takes 10")),
    "reports": ({"unheard": "tolerated takes 1,600 treated devices"}, ("takes 1,600",)),
    "steady state": ({"success_rate": 0.85, "steady": 0.9}, ("85%",)),
    "concurrency": ({"running": 4, "may_run": 4}, ("4 experiments", "at most 4")),
    "one experiment a class": ({"on_class": "e7"}, ("e7",)),
    "budgets": ({"budget": BudgetLeft("the last hour", 3, 10)}, ("3 members", "last hour")),
}
"""For each guard: facts against it, and what its reason must show of them."""


def test_by_default_nothing_stands_in_the_way() -> None:
    assert [objection(Facts(), moment) for moment in MOMENTS] == [None] * 4


def test_every_guard_has_its_test_and_a_name_of_its_own() -> None:
    assert [guard.name for guard in GUARDS] == list(BAD)


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guard_says_why_and_shows_the_value(guard: Guard) -> None:
    bad, shown = BAD[guard.name]
    facts = replace(Facts(), **bad)

    for moment in MOMENTS:
        against = objection(facts, moment)
        if not guard.asked(moment):
            assert against is None
            continue
        assert against is not None
        assert against.guard is guard
        assert all(value in against.reason for value in shown), against.reason
    # And it is the only one that minds
    assert [each for each in GUARDS if each.why_not(facts) is not None] == [guard]


def test_every_fact_is_asked_for_by_some_guard() -> None:
    asked = {name for bad, _ in BAD.values() for name in bad}
    assert asked == {each.name for each in fields(Facts)}


@given(FACTS)
def test_what_stops_an_armed_experiment_also_forbids_arming_it(facts: Facts) -> None:
    against = objection(facts, "armed")
    if against is None:
        return
    assert objection(facts, "arming") is not None
    # Not by another guard alone: this one by itself forbids it
    alone = replace(Facts(), **{name: getattr(facts, name) for name in BAD[against.guard.name][0]})
    assert objection(alone, "arming") == against


@given(FACTS)
def test_what_forbids_to_propose_also_forbids_to_arm(facts: Facts) -> None:
    for moment in ("campaign", "class"):
        if objection(facts, moment) is not None:
            assert objection(facts, "arming") is not None


@given(FACTS)
def test_a_reason_is_text(facts: Facts) -> None:
    for guard in GUARDS:
        reason = guard.why_not(facts)
        assert reason is None or reason.strip() or reason in {facts.breach, facts.closed}
        assert guard.meaning.endswith(".")


@pytest.mark.parametrize(
    ("rate", "holds"), [(1.0, True), (0.9, True), (0.899, False), (0.0, False)]
)
def test_the_steady_state_has_a_bound(rate: float, holds: bool) -> None:
    assert (objection(replace(Facts(), success_rate=rate), "armed") is None) == holds


@pytest.mark.parametrize(("left", "enough"), [(10, True), (9, False), (-2, False)])
def test_a_budget_is_spent_when_too_few_are_left_for_a_verdict(left: int, enough: bool) -> None:
    facts = Facts(budget=BudgetLeft("campaign's budget", left, 10))
    against = objection(facts, "arming")
    assert (against is None) == enough
    if against is not None:
        assert f" {max(0, left)} members are left" in against.reason


def test_windows_touch_what_is_injected_into() -> None:
    fault = Fault("api>http:GET:titles/x", "error")
    hypothesis = frozenset({str(fault)})
    experiment = Experiment("e", "GET /", BOOT, hypothesis, (fault,), Settings())
    windows = [
        Maintenance("m1", "ann", "upgrade", ("recordsdb",), 0.0, 10.0),
        Maintenance("m2", "ben", "move", ("titles",), 0.0, 10.0),
        Maintenance("m3", "kim", "freeze", (), 0.0, 10.0),
    ]
    assert touches(windows, experiment, None) == (
        Touch("titles", "ben", "move"),
        Touch("everything", "kim", "freeze"),
    )
