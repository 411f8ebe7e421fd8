"""Traces that the extension holds: assembled and learned from as those that Python holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.ingest import Traffic, pipeline
from ldfi.lineage.assembly import Assembler
from ldfi.lineage.expectations import Expectations
from ldfi.lineage.lineage import learn, learn_in_full
from ldfi.lineage.packed_spans import Packed, recognise, traces_of
from ldfi.lineage.readers import otlp
from ldfi.lineage.readers.batch import Batch
from ldfi.lineage.readers.otlp import decode_in_python, decode_protobuf
from ldfi.lineage.span import Span, Trace
from tests.kit.spans import of_service, request, wire
from tests.lineage import native

pytestmark = pytest.mark.languages

native.required()

SERVER, CLIENT, INTERNAL, PRODUCER, CONSUMER = 2, 3, 1, 4, 5


@pytest.fixture(autouse=True)
def _nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways remember operations; other tests may have made the common memory forget some."""
    monkeypatch.setattr(otlp, "_memory", otlp._Memory())
    monkeypatch.setattr(otlp._extension, "_idle", [])


@dataclass(frozen=True)
class Drawn:
    """A span as it is drawn: of which trace, and what it is."""

    trace: int
    number: int
    parent: int | None
    kind: int
    service: str
    failed: bool
    start: int
    length: int
    calls: int
    linked: bool
    arrives: int
    fired: bool = False


@st.composite
def histories(draw: st.DrawFn) -> list[Drawn]:
    """Spans of some traces: mostly plain trees, with all that may be wrong with them."""
    found: list[Drawn] = []
    for trace in range(draw(st.integers(1, 4))):
        odd = draw(st.booleans())
        rare = st.integers(0, 9).map(lambda n: n == 0) if odd else st.just(False)
        for number in range(draw(st.integers(1, 7))):
            above = None if number == 0 else draw(st.integers(0, number - 1))
            kinds = [SERVER] if number == 0 else [CLIENT, CLIENT, SERVER, SERVER, INTERNAL]
            found.append(
                Drawn(
                    trace,
                    number if not draw(rare) else 0,
                    draw(st.sampled_from([None, 77, 5])) if draw(rare) else above,
                    draw(st.sampled_from([CONSUMER, PRODUCER, 0, CLIENT]))
                    if draw(rare)
                    else draw(st.sampled_from(kinds)),
                    draw(st.sampled_from("abc")),
                    draw(st.integers(0, 3)) == 0,
                    draw(st.integers(1, 50)),
                    draw(st.sampled_from([0, 1, 5, 10**9])),
                    draw(st.integers(1, 2)) if draw(rare) else 0,
                    draw(rare),
                    draw(st.integers(0, 4 if odd else 1)),
                    draw(rare),
                )
            )
    return found


def body(drawn: Sequence[Drawn]) -> bytes:
    groups = []
    for span in drawn:
        given: dict[str, str | int] = {"http.request.method": "GET", "server.address": "b"}
        given |= {"http.response.status_code": 503 if span.failed else 200}
        given |= {"fit.calls": str(span.calls)} if span.calls else {}
        given |= {"fit.fired": "error"} if span.fired else {}
        written = wire(
            given,
            trace_id=_trace_id(span.trace),
            span_id=_span_id(span.number),
            parent_span_id=b"" if span.parent is None else _span_id(span.parent),
            kind=span.kind,
            start_time_unix_nano=span.start,
            end_time_unix_nano=span.start + span.length,
        )
        if span.linked:
            written.links.add(trace_id=_trace_id(0), span_id=_span_id(1))
        groups.append(of_service(span.service, written))
    return request(*groups).SerializeToString()


def _trace_id(number: int) -> bytes:
    return bytes([number + 1]) * 16


def _span_id(number: int) -> bytes:
    return bytes([number + 1]) * 8


def assembled(
    decode: Callable[[bytes], Batch], spans: Sequence[Drawn], expecting: bool, most: int
) -> list[Any]:
    """All that an assembler says of spans that arrive at these times."""
    expected = Expectations() if expecting else None
    assembler = Assembler(1.0, 6.0, 3, most, patience=3.0 if expecting else None, expected=expected)
    said: list[Any] = []
    for _ in range(5):  # the same once more: something becomes usual
        begin = len(said) * 10.0
        for moment in range(12):
            now = begin + moment
            arriving = [span for span in spans if span.arrives == moment]
            late = assembler.add(decode(body(arriving)).spans, now)
            said.append((late, [_said(trace) for trace in assembler.pop(now)], len(assembler)))
        said.append([_said(trace) for trace in assembler.newest(2)])
        assembler._gone.clear()
    said.append([_said(trace) for trace in assembler.flush()])
    said.append((dict(assembler.dropped), dict(assembler.fates), assembler.take_late()))
    if expected is not None:
        said.append((dict(expected._entries._of), dict(expected._answers._of)))
    return said


def _said(trace: Trace) -> tuple[object, ...]:
    return (trace.trace_id, tuple(trace.spans), trace.missing, trace.heard, learn(trace))


@settings(max_examples=native.BODIES)
@given(histories(), st.booleans(), st.sampled_from([10_000, 10_000, 5, 2]))
def test_both_ways_assemble_and_learn_the_same(
    spans: list[Drawn], expecting: bool, most: int
) -> None:
    in_rust = assembled(decode_protobuf, spans, expecting, most)
    assert in_rust == assembled(decode_in_python, spans, expecting, most)


@settings(max_examples=native.BODIES)
@given(histories())
def test_a_shape_teaches_what_each_of_its_traces_does(spans: list[Drawn]) -> None:
    batch = decode_protobuf(body(spans))
    if not isinstance(batch.spans, Packed):
        return
    for part in batch.spans.parts:
        plain = recognise([part])
        if plain is not None:
            trace = Trace(part.trace_id, Packed([part], plain))
            whole = Trace.of(part.trace_id, list(Packed([part])))
            assert learn(trace) == learn_in_full(whole)
            assert whole.spans == trace.spans


def test_a_plain_trace_is_never_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Packed, "look", _forbidden)
    bodies = list(Traffic(seed=8, groups=2).bodies(1_000))
    monkeypatch.undo()
    pipeline(iter(bodies))  # all shapes are known now
    monkeypatch.setattr(Packed, "look", _forbidden)
    assert sum(shape.count for shape in pipeline(iter(bodies))) == 40


@pytest.mark.parametrize("expecting", [True, False])
def test_a_call_that_a_proxy_has_stopped_teaches_what_it_does_in_python(expecting: bool) -> None:
    root = Drawn(0, 0, None, SERVER, "a", False, 1, 50, 0, False, 0)
    call = Drawn(0, 1, 0, CLIENT, "a", True, 2, 30, 0, False, 0)
    proxy = Drawn(0, 2, 1, CLIENT, "a", True, 3, 20, 0, False, 0, fired=True)
    spans = [root, call, proxy]
    in_rust = assembled(decode_protobuf, spans, expecting, 10_000)
    assert in_rust == assembled(decode_in_python, spans, expecting, 10_000)


def _forbidden(_: Packed) -> tuple[Span, ...]:
    raise AssertionError("somebody has looked at it")


def test_clocks_that_disagree_cost_nothing() -> None:
    root = Drawn(0, 0, None, SERVER, "a", False, 50, 5, 0, False, 0)
    call = Drawn(0, 1, 0, CLIENT, "a", False, 3, 5, 0, False, 0)
    served = Drawn(0, 2, 1, SERVER, "b", False, 1, 5, 0, False, 0)
    found = decode_protobuf(body([root, call, served])).spans
    assert isinstance(found, Packed)
    plain = recognise(found.parts)
    assert plain is not None
    assert (plain.start, plain.end, plain.outermost) == (50, 55, True)


def test_packed_spans_are_a_sequence_like_any_other() -> None:
    bodies = list(Traffic(seed=9, groups=1).bodies(1))
    found, expected = decode_protobuf(bodies[0]).spans, decode_in_python(bodies[0]).spans
    assert isinstance(found, Packed)
    assert len(found) == len(expected) > 0
    assert traces_of(found) == traces_of(expected)
    assert found == expected
    assert expected == found
    assert found != list(expected)[1:]
    assert (found[0], found[-2:]) == (expected[0], tuple(expected[-2:]))
    assert hash(found) == hash(tuple(expected))
    assert repr(found) == repr(tuple(expected))


def test_a_trace_of_which_nothing_is_left_teaches_nothing() -> None:
    assert learn(Trace.of("a" * 32, [])) is None
