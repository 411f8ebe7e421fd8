"""The gate looks at what is true now, held against programs whose nodes are down already."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.gates.current_state import CurrentState
from ldfi.experiments.domain.gates.upgrade_gate import gate
from ldfi.experiments.domain.traffic.vital_signs import Sign, Signs
from ldfi.testing.programs import Call, Step, points_of
from tests.experiments.domain.gates.test_upgrade_gate import explored
from tests.experiments.domain.gates.test_whatif import learned, survives
from tests.experiments.simulated import Application, serving
from tests.kit.observations import observation

REPLICAS = ("replica-1", "replica-2", "replica-3")
STEPS = (Step("fallback", tuple(map(Call, REPLICAS))), Step("critical", (Call("layout"),)))
STORE = Call("root", STEPS)
ALL = frozenset({*REPLICAS, "layout"})


def sign(name: str, state: str = "failing") -> Sign:
    late = {"seconds": 0.5, "usual": 0.01} if state == "late" else {}
    return Sign(name, state, (name,), 20, 20, 50.0, "f" * 32, **late)  # type: ignore[arg-type]


def now(*failing: str, late: tuple[str, ...] = (), answered: frozenset[str] = ALL) -> CurrentState:
    signs = Signs(tuple(map(sign, failing)), tuple(sign(n, "late") for n in late), answered)
    return CurrentState(1.0, signs)


@pytest.fixture(scope="module")
def store() -> Knowledge:
    return explored(STORE, 3, traffic=20)


def test_what_fails_now_counts_as_down_and_is_shown(store: Knowledge) -> None:
    assert gate(["replica-2"], [], [store], 1, now()).verdict == "safe"

    refused = gate(["replica-2"], [], [store], 1, now("replica-1", "elsewhere"))

    assert refused.verdict == "refused"
    assert refused.why == ("GET /: one more failure would hurt: replica-3",)
    assert refused.down == ("replica-2", "replica-1")
    assert [each.name for each in refused.signs] == ["replica-1"]
    # Who is down already may be taken down, and who lives without a spare may go on
    assert gate(["replica-1"], [], [store], 1, now("replica-1")).verdict == "safe"
    assert gate(["replica-2"], [], [store], 0, now("replica-1")).verdict == "safe"
    all_but_one = now("replica-1", "replica-3")
    assert gate(["replica-2"], [], [store], 0, all_but_one).verdict == "refused"


def test_who_answers_late_is_not_counted_on(store: Knowledge) -> None:
    late = now("replica-1", late=("replica-3",))
    doubted = gate(["replica-2"], [], [store], 0, late)
    assert doubted.verdict == "unknown"
    assert "it may have to do without replica-3 answers late now: 500 ms" in doubted.why[0]
    # One late replica of two that are left is what the spare is for
    assert gate(["replica-2"], [], [store], 1, now(late=("replica-3",))).verdict == "safe"
    # And what is late and hurts anyway is none of the step's business
    assert gate(["replica-2"], [], [store], 1, now(late=("layout",))).verdict == "safe"


def test_nobody_counts_on_what_nobody_has_heard_of(store: Knowledge) -> None:
    heard = now("replica-1", answered=frozenset({"layout", "replica-2"}))
    silent = gate(["replica-2"], [], [store], 0, heard)
    assert silent.verdict == "unknown"
    assert "without replica-3, which nobody has called with success within 60 s" in silent.why[0]
    assert gate(["replica-2"], [], [store], 0, now("replica-1")).verdict == "safe"


def test_a_class_that_is_not_well_or_silent_lets_nothing_through() -> None:
    known = explored(STORE, 2, traffic=20)
    assert gate(["replica-1"], [], [known], 0, CurrentState(500.0)).verdict == "unknown"
    assert "it takes 10" in gate(["replica-1"], [], [known], 0, CurrentState(500.0)).why[0]

    application = Application(serving(STORE))
    for _ in range(100):
        known.traffic.observe(observation(application.request().lineage, False), 500.0)

    ill = gate(["replica-1"], [], [known], 0, CurrentState(501.0, now().signs))
    assert ill.verdict == "refused"
    assert ill.why == ("GET /: steady state does not hold: 0% of the newest 100 requests succeed",)


def test_what_is_over_is_no_reason_any_more() -> None:
    known, application = explored(STORE, 2, traffic=20), Application(serving(STORE))
    verdicts = []
    for number in range(60):
        known.traffic.observe(observation(application.request().lineage, number >= 40), 500.0)
        current = CurrentState(501.0, now().signs)
        verdicts.append(gate(["replica-1"], [], [known], 0, current).verdict)
    assert verdicts[30] == "refused"
    assert verdicts.index("safe") == 59


def test_a_guardrail_that_does_not_hold_lets_nothing_through(store: Knowledge) -> None:
    breached = CurrentState(1.0, now().signs, "guardrail does not hold: up > 0")
    assert gate(["replica-1"], [], [store], 1, breached).why == ("guardrail does not hold: up > 0",)


@given(learned(points=2, traffic=20), st.data())
def test_what_passes_is_survived_with_all_that_fails_is_late_or_silent(
    given_of: tuple[Call, Knowledge], data: st.DataObject
) -> None:
    program, knowledge = given_of
    points = points_of(program)
    # When some points fail now, some are late, and of one nobody has heard
    drawn = st.sets(st.sampled_from(points), max_size=2)
    failing, late, silent = data.draw(drawn), data.draw(drawn), data.draw(drawn)
    step = data.draw(st.sampled_from(points))
    answered = frozenset(points) - silent - failing
    current_state = now(*sorted(failing), late=tuple(sorted(late - failing)), answered=answered)
    answer = gate([step], [], [knowledge], 0, current_state)
    # Then a step that passes is survived without those that fail and any of the others
    if answer.verdict == "safe":
        down = {step, *failing}
        assert survives(program, down)
        doubted = {p for p in late - down if survives(program, {p})}
        assert survives(program, down | doubted)
        for point in silent - down - doubted:
            gone = {*down, *doubted, point}
            known = point in knowledge.points and survives(program, {point})
            assert survives(program, gone) or not known
