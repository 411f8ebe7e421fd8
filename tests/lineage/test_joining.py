"""Consumers with traces of their own belong to the requests whose messages they took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ldfi.lineage.assembly import Assembler
from ldfi.lineage.expectations import Expectations
from ldfi.lineage.lineage import learn
from ldfi.lineage.readers import otlp_json
from ldfi.lineage.readers.jaeger import read_trace
from ldfi.lineage.readers.otlp import decode_protobuf
from ldfi.lineage.span import Span
from ldfi.testing.spans import TRACE, lineage, span
from tests.kit.spans import document, wire
from tests.kit.spans import request as export
from tests.lineage.queues import CLOCKS, Run, Step, programs

ONE, TWO, BATCH, REPLY = (f"{number:032x}" for number in (1, 2, 3, 4))
MS = 1_000_000


@dataclass
class Apart:
    """Puts consumers into traces of their own, with a link where a parent was."""

    spans: list[Span]
    traces: dict[str, str] = field(default_factory=dict)

    def divide(self) -> list[Span]:
        by_id = {each.span_id: each for each in self.spans}
        return [self._apart(each, by_id) for each in self.spans]

    def _apart(self, one: Span, by_id: Mapping[str, Span]) -> Span:
        own = self._trace_of(one, by_id)
        if one.operation.kind != "consumer" or one.parent_id is None:
            return one._replace(trace_id=own)
        link = (self._trace_of(by_id[one.parent_id], by_id), one.parent_id)
        return one._replace(trace_id=own, parent_id=None, links=(link,))

    def _trace_of(self, one: Span, by_id: Mapping[str, Span]) -> str:
        while one.parent_id is not None and one.operation.kind != "consumer":
            one = by_id[one.parent_id]
        if one.parent_id is None:
            return TRACE
        return self.traces.setdefault(one.span_id, f"{len(self.traces) + 2:032x}")


@given(programs(), CLOCKS, st.data())
def test_a_link_is_as_good_as_a_parent_in_whatever_order_spans_come(
    steps: tuple[Step, ...], clocks: Mapping[str, int], data: st.DataObject
) -> None:
    # Given a request, and the same with each consumer in a trace of its own
    run = Run(steps, clocks=clocks).execute()
    spans = data.draw(st.permutations(Apart(run.spans).divide()))
    # When these spans come in any order, none later than traces are quiet, and traces are taken in
    # any number at once
    most = data.draw(st.integers(1, 5))
    expected = Expectations() if data.draw(st.booleans()) else None
    assembler = Assembler(quiet=100, max_age=1_000, patience=200, expected=expected)
    traces, now, at = [], 0, 0
    while at < len(spans):
        many = data.draw(st.integers(1, 5))
        assembler.add(spans[at : at + many], now)
        at, now = at + many, now + 1
        traces += assembler.pop(now, most)
    for later in range(now, now + 500, 10):
        traces += assembler.pop(later, most)
    # Then the request has the same lineage
    (joined,) = [trace for trace in traces if trace.trace_id == TRACE]
    assert not joined.missing
    learned, wanted = learn(joined), lineage(*run.spans)
    assert learned is not None
    for name in ("support", "called", "failed", "detached", "orphans", "spans"):
        assert getattr(learned, name) == getattr(wanted, name), name
    assert not assembler.dropped


def request(trace: str, *more: Span) -> list[Span]:
    return [
        span("root", None, "server", at=(0, 20 * MS), trace=trace),
        span(f"send-{trace[-1]}", "root", "producer", at=(1, 2), trace=trace, point="send"),
        *more,
    ]


def popped(assembler: Assembler, now: float) -> dict[str, set[str]]:
    runs = {trace.trace_id: learn(trace) for trace in assembler.pop(now)}
    return {trace_id: set(run.support) for trace_id, run in runs.items() if run}


def test_a_batch_belongs_to_each_request_whose_message_is_in_it() -> None:
    # Given two requests, and a consumer that takes both messages and works on each by itself
    links = ((ONE, "send-1"), (TWO, "send-2"))
    batch = [
        span("take", None, "consumer", "worker", at=(3, 9 * MS), trace=BATCH, point="take"),
        span("once", "take", service="worker", trace=BATCH),
        *(
            span(f"work{n}", "take", "consumer", "worker", trace=BATCH, point=f"work{n}")
            for n in (1, 2)
        ),
    ]
    batch = [
        each._replace(links=links if each.span_id == "take" else ())
        if each.span_id[:-1] != "work"
        else each._replace(links=(links[int(each.span_id[-1]) - 1],))
        for each in batch
    ]
    assembler = Assembler(quiet=2)
    assembler.add([*request(ONE), *request(TWO), *batch], now=0)
    found = popped(assembler, 2) | popped(assembler, 5)
    # Then each has what was done for all, and for itself
    assert found[ONE] == {"send", "take", "once", "work1"}
    assert found[TWO] == {"send", "take", "once", "work2"}


def test_what_a_joined_consumer_has_announced_is_missed_in_its_request() -> None:
    # Given a consumer with a trace of its own that has made two calls, one of which is lost
    def consumer(end: int) -> list[Span]:
        take = span("take", None, "consumer", "worker", at=(3, end), trace=BATCH, calls="2")
        query = span("query", "take", service="worker", at=(4, 5), trace=BATCH)
        return [take._replace(links=((ONE, "send-1"),)), query]

    # When it was over in time, and when it was not and nobody waited for it
    for end, missing in ((9 * MS, "call"), (10**12, "")):
        assembler = Assembler(quiet=2, patience=10, expected=Expectations())
        assembler.add([*request(ONE), *consumer(end)], now=0)
        popped = [trace for now in (2, 4, 6, 8, 10, 12) for trace in assembler.pop(now)]
        # Then the request has a hole in the one case, and not in the other
        (joined,) = [trace for trace in popped if trace.trace_id == ONE]
        assert joined.missing == missing


def test_a_request_that_takes_in_a_reply_by_a_link_waited_for_it() -> None:
    # Given a worker that outlasts the request, whose reply the request receives
    worker = [
        span("take", "send-1", "consumer", "worker", at=(3, 10**12), trace=ONE, point="take"),
        span("query", "take", service="worker", at=(4 * MS, 5 * MS), trace=ONE),
        span("reply", "take", "producer", "worker", at=(6 * MS, 7 * MS), trace=ONE, point="reply"),
    ]
    receive = span("receive", "root", "internal", at=(3 * MS, 8 * MS), trace=ONE)
    assert lineage(*request(ONE, *worker, receive)).support == {"send"}
    receive = receive._replace(links=((ONE, "reply"),))
    found = lineage(*request(ONE, *worker, receive))
    assert found.support == {"send", "take", "query", "reply"}


def test_a_link_that_leads_nowhere_is_counted() -> None:
    # Given consumers whose requests are gone, or never came
    assembler = Assembler(quiet=2, max_age=30)
    assembler.add(request(ONE), now=0)
    assert popped(assembler, 2) == {ONE: {"send"}}
    for number, followed in ((3, ONE), (4, TWO)):
        take = span("take", None, "consumer", "worker", trace=f"{number:032x}")
        assembler.add([take._replace(links=((followed, "send-1"),))], now=3)
    assert [trace.trace_id for trace in assembler.pop(40)] == [BATCH, REPLY]
    assert assembler.dropped == {"linked_late": 1, "linked_nowhere": 1}


def test_links_are_read_from_every_format_that_has_them() -> None:
    there, wanted = ("ab" * 16, "cd" * 8), (("ab" * 16, "cd" * 8),)
    link = {"traceId": there[0], "spanId": there[1]}
    raw: dict[str, Any] = {"traceId": ONE, "spanId": "01" * 8, "startTimeUnixNano": "5"}
    assert otlp_json.read_document(document({**raw, "links": [link]})).spans[0].links == wanted

    written = wire(trace_id=bytes.fromhex(ONE))
    written.links.add(trace_id=bytes.fromhex(there[0]), span_id=bytes.fromhex(there[1]))
    assert decode_protobuf(export(written).SerializeToString()).spans[0].links == wanted

    parent = {"refType": "CHILD_OF", "traceID": ONE, "spanID": "02" * 8}
    follows = {"refType": "FOLLOWS_FROM", "traceID": there[0], "spanID": there[1]}
    jaeger = {"traceID": ONE, "spanID": "01" * 8, "references": [parent, follows]}
    (read,) = read_trace({"traceID": ONE, "spans": [jaeger]}).spans
    assert (read.parent_id, read.links) == ("02" * 8, wanted)
