from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.campaign.experiment_tally import Trial
from ldfi.experiments.domain.campaign.kinds import Kinds
from ldfi.experiments.domain.campaign.result import ExperimentResult
from ldfi.fit.protocol.kinds import KINDS, LATE
from ldfi.fit.protocol.native_kinds import native
from ldfi.lineage import evidence
from ldfi.testing.programs import Run, points_of
from ldfi.testing.spans import tree
from tests.fit.kinds import LISTED
from tests.lineage.drawn import programs

HTTP, SELECT = "api>http:GET:ratings/*", "api>db:SELECT:records/marks"


@pytest.mark.parametrize(
    ("faults", "aside"),
    [
        (("error@a", "delay@b"), {"a", "b"}),
        ((f"sql:deadlock@{SELECT}", "error@a"), {f"sql:deadlock@{SELECT}", "a"}),
    ],
)
def test_an_impossible_kind_silences_no_other(faults: tuple[str, ...], aside: set[str]) -> None:
    points = frozenset(fault.partition("@")[2] for fault in faults)
    taught = ExperimentResult(frozenset(faults), succeeded=None, called=points)
    trial = Trial("GET /", frozenset(faults), faults, "explore", "", "", 0, 20, 10, taught)

    assert trial.silent(points) == aside
    fired = replace(taught, fired=frozenset(faults))
    assert replace(trial, taught=fired, verdict="tolerated").silent(points) == set()


def test_each_kind_is_tried_where_it_can_happen() -> None:
    kinds = Kinds(("error", "refused", "sql:deadlock", "empty"))

    # An error over HTTP is a refused connection, and that is tried once
    assert kinds.at(HTTP) == [f"refused@{HTTP}", f"empty@{HTTP}"]
    assert kinds.at(SELECT) == [f"error@{SELECT}", f"sql:deadlock@{SELECT}"]


def test_what_survived_one_kind_still_relies_on_the_others() -> None:
    kinds = Kinds(("error", "delay", "refused", "status:500", "timeout"))
    # A point that failed by an error, and was called all the same
    relied_on = frozenset({f"delay@{HTTP}"})

    spelt = kinds.relied_on(relied_on, frozenset({f"error@{HTTP}"}))

    assert spelt == {f"{kind}@{HTTP}" for kind in ("delay", "timeout", "refused", "status:500")}


def test_a_length_that_is_drawn_is_relied_on_as_a_delay_is_and_stops_no_call() -> None:
    drawn = "delay:p50=0.8..p99=3"
    kinds = Kinds(("refused", "delay", drawn))

    spelt = kinds.relied_on(frozenset({f"delay@{HTTP}"}), frozenset({f"refused@{HTTP}"}))

    assert spelt == {f"delay@{HTTP}", f"{drawn}@{HTTP}"}
    assert kinds.stopping(HTTP) == [f"refused@{HTTP}"]


@given(st.data(), st.lists(st.sampled_from(LISTED), min_size=1, max_size=5, unique=True))
def test_the_record_says_what_the_run_would_say(data: st.DataObject, asked: list[str]) -> None:
    # Given any run, whose record knows errors and delays alone
    program = data.draw(programs(5, picky=True))
    points = points_of(program)
    kinds = [*KINDS, *(each for each in asked if each not in KINDS)]
    names = {point: f"api>http:GET:{point}/" for point in points}
    faults = [f"{kind}@{point}" for point in points for kind in KINDS]
    run = Run(frozenset(data.draw(st.lists(st.sampled_from(faults), max_size=3))))
    called = tree(*run.execute(program).spans)
    recorded = _named(evidence.relied_on(called), names)
    survived = _named(evidence.survived(called), names)

    # When the other kinds are spelt out of it
    spelt = Kinds(tuple(kinds)).relied_on(recorded, survived)
    kinds.append("refused")  # which is what an error is over HTTP

    # Then no fault is missing that the run relied on, and none is there that its record proves
    late, frontier = evidence.called(called), evidence.support(called) | evidence.failed(called)
    possible = {
        f"{kind}@{names[point]}"
        for kind in kinds
        for point in (late if kind in LATE else frontier)
        if native(kind, names[point])
    }
    assert recorded <= spelt <= possible
    assert possible - spelt <= survived


def _named(faults: frozenset[str], names: dict[str, str]) -> frozenset[str]:
    split = (fault.partition("@") for fault in faults)
    return frozenset(f"{kind}@{names[point]}" for kind, _, point in split)
