"""The mark leaves the process before a fault takes effect, in both arms, and holds nothing up."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags

from ldfi.fit import request, send_mark
from ldfi.fit.protocol.mark import Mark

CASES = json.loads(Path("fit/protocol/vectors/marks.json").read_text(encoding="utf-8"))["cases"]
CALLER = SpanContext(1, 2, is_remote=True, trace_flags=TraceFlags(1))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["text"][:40])
def test_what_a_mark_says(case: dict[str, object]) -> None:
    read = Mark.parse(str(case["text"]))

    assert (read and asdict(read)) == case["read"]
    assert read is None or str(read) == case["text"]


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[TracerProvider]:
    made = TracerProvider(shutdown_on_exit=False)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: made)
    monkeypatch.setattr(trace, "get_tracer", made.get_tracer)
    yield made
    made.shutdown()


def serving(provider: TracerProvider, work: Callable[[], None]) -> None:
    """Do it in a request that a caller of ours has sent, within a call of its own."""
    around = trace.set_span_in_context(NonRecordingSpan(CALLER))
    tracer = provider.get_tracer("application")
    with tracer.start_as_current_span("served", around, SpanKind.SERVER) as served:
        request.note(served)
        with tracer.start_as_current_span("GET", kind=SpanKind.CLIENT):
            work()


@pytest.mark.parametrize("arm", ["treatment", "control"])
def test_it_leaves_at_once_below_the_incoming_call(provider: TracerProvider, arm: str) -> None:
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    serving(provider, lambda: send_mark.leave(arm, "e7c1", "refused", "shop>http:GET:prices/"))
    left = exporter.get_finished_spans()[0]

    said = Mark.parse(str((left.attributes or {})["fit.mark"]))
    assert left.name == "fit.mark"
    assert said is not None
    assert (said.arm, said.fault) == (arm, "refused@shop>http:GET:prices/")
    assert left.parent is not None
    assert (left.parent.trace_id, left.parent.span_id) == (1, 2)


@pytest.mark.parametrize("flush", ["hangs", "fails"])
def test_a_flush_holds_no_call_up(
    provider: TracerProvider, monkeypatch: pytest.MonkeyPatch, flush: str
) -> None:
    released, flushes = threading.Event(), list[None]()

    def force_flush(_milliseconds: int = 0) -> bool:
        flushes.append(None)
        if flush == "fails":
            raise OSError("no collector")
        return released.wait(30)

    monkeypatch.setattr(provider, "force_flush", force_flush)
    began = time.thread_time()
    for _ in range(20):
        send_mark.leave("treatment", "e7c1", "refused", "shop>http:GET:prices/")
    spent, done = time.thread_time() - began, len(flushes)
    released.set()

    assert spent < 1
    assert done == 1 if flush == "hangs" else done > 1  # one at a time


def test_a_mark_is_not_left_to_a_flush_that_began_before_it(
    provider: TracerProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter, begun = InMemorySpanExporter(), threading.Event()
    second, both = threading.Event(), threading.Event()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    def force_flush(_milliseconds: int = 0) -> bool:
        ended = len(exporter.get_finished_spans())
        begun.set()
        if ended == 2:
            both.set()
        return second.wait(30)

    monkeypatch.setattr(provider, "force_flush", force_flush)
    send_mark.leave("treatment", "e7c1", "refused", "shop>http:GET:prices/")
    assert begun.wait(30)
    send_mark.leave("treatment", "e7c1", "refused", "shop>http:GET:stock/")
    second.set()

    assert both.wait(30), "the second mark has not left"


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_forked_process_is_another_instance() -> None:
    here = send_mark._process.instance
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads that the child does not have
        child = os.fork()
    if not child:
        os.write(writing, send_mark._process.instance.encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    there = os.read(reading, 64).decode()
    os.close(reading)

    assert len(there) == len(here) == 16
    assert there != here
