"""Who was waited for, against brute force over programs with queues."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ldfi.lineage.lineage import learn, learn_in_full
from ldfi.lineage.message_waits import SKEW
from ldfi.lineage.span import Span, Trace
from ldfi.testing.spans import TRACE, lineage, span
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


MS = 1_000_000
ROOT = span("root", kind="server", service="web", at=(1, 100 * MS))
ASKED = span("ask", "root", service="web", at=(2, 60 * MS))
SERVED = span("api", "ask", "server", "api", at=(3, 50 * MS))


def late(name: str, parent: str, begun: int, service: str = "web", kind: str = "client") -> Span:
    """Something that begins so many milliseconds after the request has, and takes long."""
    return span(name, parent, kind, service, at=(begun * MS, 400 * MS))


@pytest.mark.parametrize(
    ("spans", "needed"),
    [
        # In the service of the request: a call, work, a call within work that began in time
        ([late("mail", "root", 105)], "ask"),
        ([late("mail", "root", 102)], "ask"),
        ([late("task", "root", 105, kind="internal"), late("mail", "task", 106)], "ask"),
        ([late("task", "root", 50, kind="internal"), late("mail", "task", 106)], "ask"),
        ([late("mail", "root", 105), late("deep", "mail", 106)], "ask"),
        ([late("mail", "root", 105), late("post", "mail", 106, "post", "server")], "ask"),
        # In a service further in, that had answered while the request went on
        ([late("mail", "api", 55, "api")], "ask"),
        ([late("mail", "api", 55, "api"), late("disk", "root", 90)], "ask disk"),
        # In time, as far as is known: within the resolution of clocks, by another clock
        ([late("mail", "root", 99)], "ask mail"),
        ([late("mail", "root", 101)], "ask mail"),
        ([late("task", "root", 50, kind="internal"), late("mail", "task", 98)], "ask mail"),
        ([late("mail", "root", 105, "other")], "ask mail"),
        ([late("mail", "root", 90), late("post", "mail", 900, "post", "server")], "ask mail"),
        ([late("mail", "api", 49, "api")], "ask mail"),
    ],
)
def test_what_begins_when_its_service_has_answered_is_not_needed(
    spans: list[Span], needed: str
) -> None:
    made = [ROOT, ASKED, SERVED, *spans]
    run = lineage(*made)
    assert (
        run.support == set(needed.split()) == {p for f in run.relied_on for p in f.split("@")[1:]}
    )
    assert run.called == run.support
    # And it is told so however often such requests were seen that began all of it in time
    in_time = [s._replace(start=40 * MS) for s in made]
    for each in (in_time, made, in_time, made):
        trace = Trace.of(TRACE, each)
        learned, full = learn(trace), learn_in_full(trace)
        assert learned is not None and full is not None
        assert learned.support == full.support


def test_a_request_that_does_not_say_when_it_ended_has_not_answered() -> None:
    open_ended = ROOT._replace(end=ROOT.start)
    assert lineage(open_ended, late("mail", "root", 105)).support == {"mail"}


def test_a_fault_that_fires_when_the_request_is_over_is_no_exposure() -> None:
    mail = span("mail", "root", service="web", at=(105 * MS, 110 * MS), fired="error", failed=True)
    run = lineage(ROOT, ASKED, mail)
    assert (run.fired, run.failed, run.ends) == (frozenset(), frozenset(), frozenset())
