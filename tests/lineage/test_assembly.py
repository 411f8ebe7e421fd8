"""Assembly: traces out of spans that come as they please."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.lineage.assembly import Assembler
from ldfi.lineage.message_waits import SKEW
from ldfi.lineage.span import Span, Trace
from ldfi.testing.spans import span

ONE = f"{1:032x}"


def of(trace: int, name: str) -> Span:
    return span(name, trace=f"{trace:032x}")


def test_a_trace_is_whole_when_it_has_been_quiet() -> None:
    assembler = Assembler(quiet=2, max_age=60)
    assembler.add([of(1, "a")], now=0)
    assembler.add([of(1, "b")], now=1.5)
    assert assembler.pop(now=3) == []
    (trace,) = assembler.pop(now=3.5)
    assert [s.span_id for s in trace.spans] == ["a", "b"]
    assert len(assembler) == 0


def test_so_many_traces_are_taken_at_once_and_the_others_stay_open() -> None:
    assembler = Assembler(quiet=2, max_age=60)
    assembler.add([of(trace, "a") for trace in range(1, 8)], now=0)
    assembler.add([of(8, "a")], now=1)
    taken = [[int(trace.trace_id, 16) for trace in assembler.pop(2, most=3)] for _ in range(4)]
    assert taken == [[1, 2, 3], [4, 5, 6], [7], []]
    assert len(assembler) == 1


def test_a_trace_that_never_falls_quiet_is_handed_over_when_it_is_old() -> None:
    assembler = Assembler(quiet=2, max_age=5)
    for second in range(5):
        assembler.add([of(1, f"s{second}")], now=second)
    assert assembler.pop(now=4.5) == []
    assert len(assembler.pop(now=5)) == 1


def test_open_traces_may_be_looked_at_the_newest_first_and_stay_open() -> None:
    assembler = Assembler(quiet=2.0)
    for number in range(1, 4):
        assembler.add([of(number, "root")], now=float(number))
    assembler.add([of(1, "more")], now=5.0)

    looked = assembler.newest(2)

    assert [(trace.heard, len(trace.spans)) for trace in looked] == [(5.0, 2), (3.0, 1)]
    assert looked[0].trace_id == of(1, "root").trace_id
    assert len(assembler) == 3


def test_late_spans_are_counted() -> None:
    assembler = Assembler(quiet=1)
    assembler.add([of(1, "a")], now=0)
    assembler.pop(now=1)
    assembler.add([of(1, "b")], now=2)
    assert assembler.dropped == {"late": 1}
    assert assembler.pop(now=100) == []


def test_a_consumer_that_is_still_going_on_holds_nobody_up() -> None:
    # Given a request that is over, and calls of a consumer that has not ended
    request = span("root", None, "server", at=(0, 5), trace=ONE)
    assembler = Assembler(quiet=2, max_age=60)
    assembler.add([request, span("a", "consumer", at=(2, 2 * SKEW), trace=ONE)], now=0)
    assert len(assembler.pop(now=2)) == 1


def test_what_comes_late_is_named_with_the_request_that_it_is_of() -> None:
    assembler = Assembler(quiet=2, max_age=60)
    request = span("root", None, "server", trace=ONE)
    assembler.add([request, span("send", "root", "producer", trace=ONE)], now=0)
    assert len(assembler.pop(now=2)) == 1
    late = span("take", "send", "consumer", "worker", trace=ONE)
    linked = span("t", None, "consumer", "other", trace="9" * 32)._replace(links=((ONE, "send"),))
    stream = span("stream", None, "server", trace="8" * 32)
    assembler.add([span("call", "stream", trace=stream.trace_id)], now=3)
    assembler.pop(now=63)
    assembler.add([late, linked, stream], now=70)
    found = [(span.span_id, of and of.name) for of, span in assembler.take_late()]
    assert found == [("take", "root"), ("t", "root"), ("stream", None)]
    assert assembler.take_late() == []
    assert assembler.dropped == {"late": 2, "linked_late": 1}


def test_a_flood_pushes_out_what_has_been_quiet_longest() -> None:
    assembler = Assembler(quiet=1, max_traces=3)
    for trace in range(5):
        assembler.add([of(trace, "a")], now=0)
    assert len(assembler) == 3
    assert assembler.dropped == {"evicted": 2}
    assert [t.trace_id for t in assembler.pop(now=1)] == [f"{n:032x}" for n in (2, 3, 4)]


def test_a_trace_with_too_many_spans_is_given_up_as_a_whole() -> None:
    assembler = Assembler(quiet=1, max_spans_per_trace=10)
    assembler.add([of(1, str(i)) for i in range(25)], now=0)
    assert assembler.pop(now=5) == []
    assert assembler.dropped == {"oversize": 11, "late": 14}


def test_duplicates_do_not_make_a_trace_too_large() -> None:
    assembler = Assembler(quiet=1, max_spans_per_trace=10)
    assembler.add([of(1, str(i % 3)) for i in range(250)], now=0)
    (trace,) = assembler.pop(now=5)
    assert len(trace.spans) == 3


def test_memory_stays_bounded_under_traces_that_never_finish() -> None:
    assembler = Assembler(quiet=1, max_age=1000, max_traces=10)
    for trace in range(10_000):
        assembler.add([of(trace, "a")], now=trace / 1e6)
    assert len(assembler) == 10
    assert assembler.dropped["evicted"] == 9_990


@pytest.mark.parametrize("wrong", [{"quiet": -1.0}, {"quiet": 9.0, "max_age": 1.0}])
def test_nonsense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="quiet="):
        Assembler(**wrong)  # type: ignore[arg-type]


@given(st.integers(0, 10**6), st.integers(1, 7), st.integers(1, 5))
def test_neither_order_nor_batches_nor_duplicates_change_the_traces(
    seed: int, batch: int, traces: int
) -> None:
    # Given the spans of some traces, shuffled, some twice, in batches
    rng = random.Random(seed)
    spans = [of(t, f"{i}") for t in range(traces) for i in range(rng.randrange(1, 6))]
    sent = spans + rng.choices(spans, k=rng.randrange(4))
    rng.shuffle(sent)
    assembler = Assembler(quiet=100, max_age=1000)
    for now, first in enumerate(range(0, len(sent), batch)):
        assembler.add(sent[first : first + batch], now)
    # Then exactly those traces come out
    popped = {trace.trace_id: trace for trace in assembler.flush()}
    expected = {
        f"{t:032x}": Trace.of(f"{t:032x}", [s for s in spans if s.trace_id == f"{t:032x}"])
        for t in range(traces)
    }
    assert popped == expected
