"""Who was waited for, against brute force over programs with queues."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import assume, given
from hypothesis import strategies as st

from ldfi.lineage.waiting import SKEW
from ldfi.testing.spans import lineage
from tests.lineage.drawn import sets_of
from tests.lineage.queues import CLOCKS, Run, Step, alike, points_of, programs, relied_on

Clocks = Mapping[str, int]


@given(programs(), CLOCKS)
def test_what_is_relied_on_is_what_fails_the_request_in_some_program_with_these_spans(
    steps: tuple[Step, ...], clocks: Clocks
) -> None:
    # Given a request whose consumers ended before it or clearly after it
    run = Run(steps, clocks=clocks).execute()
    assume(all(not run.end < done <= run.end + 2 * SKEW for done in run.consumed))
    # Then its support is what some program relies on that leaves just these spans
    expected = set().union(*(relied_on(other) for other in alike(steps, run)))
    assert lineage(*run.spans).support == expected


@given(programs(optional=True), CLOCKS, st.data())
def test_whatever_the_clocks_say_no_set_that_misses_the_support_hurts(
    steps: tuple[Step, ...], clocks: Clocks, data: st.DataObject
) -> None:
    # Given a good run, perhaps with faults in it, at whatever times things end
    points = points_of(steps)
    faults = frozenset(f"error@{point}" for point in data.draw(sets_of(points)))
    run = Run(steps, faults, clocks).execute()
    assume(run.good)
    # Then the request survives that whatever it did not rely on fails
    support = lineage(*run.spans).support
    others = frozenset(f"error@{point}" for point in points if point not in support)
    assert Run(steps, others, clocks).execute().good


@given(programs(), CLOCKS, st.sampled_from([3, 10, 100, 1_000]))
def test_what_is_judged_while_consumers_go_on_teaches_the_same_or_nothing(
    steps: tuple[Step, ...], clocks: Clocks, patience: int
) -> None:
    # Given a request, and its spans as far as they have ended some time after it
    run = Run(steps, clocks=clocks).execute()
    judged = run.end + patience * SKEW + 10**18
    ended = [each for each in run.spans if each.end <= judged]
    # Then it has gaps, or what it relies on is what it turns out to rely on in the end
    learned = lineage(*ended)
    assert learned.orphans or learned.support == lineage(*run.spans).support
