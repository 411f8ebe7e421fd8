"""What a later run goes on with says the same as every result there was."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import chain, combinations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ldfi.experiments.domain.campaign.exploration import Exploration
from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.campaign.result import RULES, ExperimentResult
from ldfi.experiments.domain.campaign.snapshot import Snapshot, carried, in_vain, thinned
from ldfi.experiments.domain.judging.two_slots import Opening
from ldfi.experiments.domain.settings import Settings
from ldfi.testing.programs import Call
from ldfi.testing.world import PROGRAM
from tests.experiments.domain.campaign.test_exploration import (
    GIVES_UP_BEFORE_A_FALLBACK,
    HISTORIES,
    LAYOUT,
    Lab,
    Liar,
    harm,
    same,
)
from tests.experiments.simulated import serving, working

RUNS = 3
BOUNDS = Settings(kinds=("error", "delay"), max_union=4, min_traffic=5)


def found(exploration: Exploration) -> list[frozenset[str]]:
    """What the record of findings says: in the order in which they came."""
    return sorted(
        (faults for faults, state in exploration.states.items() if state == "open"), key=sorted
    )


@settings(max_examples=max(1, HISTORIES.max_examples // 4))  # several runs each
@given(
    working(points=4),
    st.integers(0, 50),
    st.integers(0, 3),
    st.sampled_from([("error",), ("error", "delay")]),
    st.integers(1, 12),
)
@example(GIVES_UP_BEFORE_A_FALLBACK, 27, 1, ("error", "delay"), 5)
def test_whoever_goes_on_from_where_the_last_run_stood_knows_the_same(
    program: Call, seed: int, lies: int, kinds: tuple[str, ...], broken_off: int
) -> None:
    """Runs upon runs, told true and false harm; some broken off somewhere, as a restart does."""
    bounds = Settings(kinds=kinds, seed=seed, max_union=4, min_traffic=5, rechecks=2)
    lab = Lab(serving(program), bounds, application=Liar(serving(program), seed, lies))
    for _ in range(broken_off):
        if (plan := lab.exploration.plan()) is not None:
            lab.carry_out(plan)
    for run in range(RUNS):
        # Given what a run leaves, written down and read again
        document = json.loads(json.dumps(lab.exploration.snapshot().to_json()))
        again = lab.fresh()
        again.resume(Snapshot.from_json(document))
        # When the next one begins, here and there
        known = found(lab.exploration)
        lab.exploration.begin_run(known)
        again.begin_run(known)
        # Then the same is known, and the same comes next, to its end
        for step in range(60):
            same(again, lab.exploration)
            plan = lab.exploration.plan()
            assert plan == again.plan()
            if plan is None or step == broken_off + 3 * run:
                break
            lab.carry_out(plan)
            again.learn(lab.results[-1])


FAULTS = tuple(f"{kind}@{point}" for kind in ("error", "delay") for point in ("a", "b", "c"))
SETS = st.frozensets(st.sampled_from(FAULTS), min_size=1, max_size=2)


@st.composite
def results(draw: st.DrawFn) -> ExperimentResult:
    """Few kinds of result, so that many say the same."""
    injected = draw(SETS)
    succeeded = draw(st.sampled_from([True, True, False, False, None]))
    fired = draw(st.sampled_from([injected, frozenset([min(injected)])]))
    return ExperimentResult(
        injected,
        succeeded=succeeded,
        fired=frozenset() if succeeded is None else fired,
        relied_on=draw(st.sampled_from([frozenset(), frozenset({"error@d"})]))
        if succeeded
        else frozenset(),
        called=frozenset("abc") if succeeded else frozenset(),
        survived=fired if succeeded else frozenset(),
        purpose=draw(st.sampled_from(["explore", "confirm", "verify", "repeat", "recheck"])),
        degraded=bool(succeeded) and draw(st.booleans()) and draw(st.booleans()),
        rules=draw(st.sampled_from([RULES, RULES, RULES, 1])),
        opening=Opening(draw(st.floats(0, 3)), 0.05) if succeeded is False else None,
        traces=(draw(st.text("0123", min_size=3, max_size=3)),),
    )


HISTORY = st.lists(results(), max_size=8).flatmap(
    lambda some: st.lists(st.sampled_from(some), max_size=25) if some else st.just([])
)


@HISTORIES
@given(HISTORY, HISTORY, st.integers(0, 9))
def test_what_is_kept_teaches_what_all_of_it_taught(
    before: list[ExperimentResult], after: list[ExperimentResult], seed: int
) -> None:
    """Also of what comes later, and by lot."""
    traffic = Lab(serving(PROGRAM)).traffic
    bounds = replace(BOUNDS, seed=seed)
    whole, kept = (Exploration(Knowledge("GET /", bounds, traffic)) for _ in range(2))
    # Given all results to the one; of those to the other only what is kept of them
    whole.replay(before)
    kept.replay(before)
    whole.knowledge = whole.knowledge.again(e for e in whole.knowledge.results if not in_vain(e))
    kept.begin_run(())

    alike(whole, kept)
    # When more comes
    whole.replay(after)
    kept.replay(after)
    # Then the same follows from it
    alike(whole, kept)


def alike(whole: Exploration, kept: Exploration) -> None:
    one, other = whole.knowledge, kept.knowledge
    assert whole.states == kept.states
    assert {faults for faults, _ in one.findings()} == {faults for faults, _ in other.findings()}
    assert one.hurt == other.hurt
    assert one.propose() == other.propose()
    assert one.recheck() == other.recheck()
    for faults in chain.from_iterable(combinations(FAULTS, size) for size in (1, 2)):
        assert one.solver_input.explorer.judge(faults) == other.solver_input.explorer.judge(faults)
    for said in ("open", "shaky", "weightiest"):
        mine, theirs = (getattr(each.evidence_quality, said)() for each in (one, other))
        assert mine == theirs, said
    for said in ("worth_repeating", "unproved"):
        mine, theirs = ([*getattr(each.evidence_quality, said)()] for each in (one, other))
        assert mine == theirs, said
    assert contradictions(whole) == contradictions(kept)


def contradictions(exploration: Exploration) -> set[tuple[frozenset[str], ...]]:
    found = exploration.knowledge.evidence_quality.contradictions()
    return {(hurt.injected, *again) for hurt, again in found}


@given(HISTORY, st.integers(0, 25))
def test_choosing_twice_is_choosing_once(history: list[ExperimentResult], at: int) -> None:
    assert thinned(thinned(history)) == thinned(history)
    assert thinned([*thinned(history[:at]), *history[at:]]) == thinned(history)
    assert sum(each.times for each in thinned(history)) == len(history)


def test_of_a_thousand_that_say_the_same_three_are_kept() -> None:
    same_again = [replace(harm(LAYOUT, "verify"), traces=(str(n),)) for n in range(1000)]
    kept = carried([*same_again, ExperimentResult(LAYOUT, succeeded=None)])
    left = [(("0",), 1), (("1",), 1), (("999",), 998)]
    assert [(each.traces, each.times) for each in kept] == left
