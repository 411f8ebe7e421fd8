"""The simulation of late spans: its targets hold, and it would notice if they did not."""

from __future__ import annotations

import pytest

from benchmarks.late_spans import Run, Sent, measure, simulated
from ldfi.experiments.domain.traffic.observation import Observation, Outcome
from ldfi.testing.spans import lineage, span


@pytest.mark.parametrize("marks", [True, False])
@pytest.mark.parametrize("depth", [1, 4])
def test_nothing_is_made_of_a_part_and_nothing_is_lost_uncounted(depth: int, marks: bool) -> None:
    row = simulated(depth, marks, 400, seed=1).row()
    assert row["announced"] == row["invented"] == row["uncounted"] == 0
    assert int(str(row["intact and used"])) >= 0.98 * int(str(row["intact"])) > 0


def test_a_trace_taken_in_parts_would_be_noticed() -> None:
    edge = span("served", "device", "server", "s0", route="/work")
    call = span("call", "served", "client", "s0", point="s0>http:GET:s1/work")
    inner = span("inner", "call", "server", "s1", at=(2, 3), route="/work")
    run = Run(1, marks=False)
    for trace_id, parts in {"1": [edge, call], "2": [inner], "3": [edge, inner]}.items():
        run.sent[trace_id] = Sent({each.span_id: each for each in (edge, call, inner)}, frozenset())
        told = Outcome(trace_id, "d", "", success=True)
        run.used[trace_id] = Observation(lineage(*parts), told)
    row = run.row()
    assert (row["announced"], row["invented"]) == (3, 1)


def test_what_it_says_has_the_form_of_all_benchmarks() -> None:
    _, targets = measure(requests=20)
    assert {frozenset(each) for each in targets.values()} == {frozenset({"value", "target", "met"})}
