"""A process says what it can make fail: as a span, soon, again, and after a fork."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind

from ldfi import fit
from ldfi.fit import clients, patching, reporting
from ldfi.fit.protocol.reach import InjectorReport


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    known: set[str] = set()
    monkeypatch.setattr(reporting, "_kinds", known)
    monkeypatch.setattr(reporting, "_libraries", set())
    monkeypatch.setattr(reporting, "_unknown", set())
    monkeypatch.setattr(reporting, "_bare", {})
    yield known


def spans_of(provider: TracerProvider, monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return exporter


def test_a_report_is_a_trace_of_its_own(kinds: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    provider = TracerProvider()
    exporter = spans_of(provider, monkeypatch)
    kinds |= {"http", "db"}
    with provider.get_tracer("host").start_as_current_span("a request", kind=SpanKind.SERVER):
        assert reporting.write("my shop")
    span = exporter.get_finished_spans()[0]
    assert (span.name, span.parent, span.kind) == ("fit.reach", None, SpanKind.INTERNAL)
    said = InjectorReport.parse(str((span.attributes or {})["fit.reach"]))
    assert said.injector.startswith("python/")
    assert [str(each) for each in said.reaches] == [
        *("my_shop>db:*", "my_shop>http:*", "my_shop>library:fit")
    ]


def test_who_reaches_nothing_says_nothing(kinds: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = spans_of(TracerProvider(), monkeypatch)
    assert not kinds
    assert not reporting.write("shop")
    assert exporter.get_finished_spans() == ()


def test_the_sampler_keeps_a_report(kinds: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    kinds.add("http")
    dropped = spans_of(TracerProvider(sampler=ALWAYS_OFF), monkeypatch)
    assert not reporting.write("shop")
    kept = spans_of(TracerProvider(sampler=fit.Sampler(ALWAYS_OFF)), monkeypatch)
    assert reporting.write("shop")
    assert (len(dropped.get_finished_spans()), len(kept.get_finished_spans())) == (0, 1)


def test_a_point_by_hand_is_reported(kinds: set[str]) -> None:
    fit.point("cache", "get", peer="homecache")
    assert [str(each) for each in reporting.report("shop").reaches] == [
        "shop>cache:*",
        "shop>library:fit",
    ]


def test_a_kind_that_is_no_part_of_a_name_does_not_stop_the_others(kinds: set[str]) -> None:
    kinds |= {"http", "my kind", "a|b"}
    assert [str(each) for each in reporting.report("shop").reaches] == [
        *("shop>http:*", "shop>library:fit")
    ]


def test_libraries_that_fit_does_not_know_are_named_once_they_are_imported(
    kinds: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds.add("http")
    names = ("pigeon", "sparrow", "flask")  # flask's calls nobody, and is known
    (tmp_path / "birds.dist-info").mkdir()
    (tmp_path / "birds.dist-info" / "METADATA").write_text("Name: birds\nVersion: 1\n")
    lines = "".join(f"{name} = birds.{name}:Instrumentor\n" for name in names)
    (tmp_path / "birds.dist-info" / "entry_points.txt").write_text(
        f"[opentelemetry_instrumentor]\n{lines}"
    )
    (tmp_path / "birds").mkdir()
    for name in ("__init__", *names):
        (tmp_path / "birds" / f"{name}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    clients.watch_for_others()
    try:
        for name in ("birds.pigeon", "birds.flask"):
            import_module(name)
        said = InjectorReport.parse(str(reporting.report("shop")))
    finally:
        patching.stop_waiting()
    assert [str(each) for each in said.reaches] == [
        *("shop>http:*", "shop>library:fit", "shop>unknown:pigeon|none")
    ]


PROCESS = textwrap.dedent(
    """
    import os, sys, time
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

    class Said(SpanExporter):
        def export(self, spans):
            for span in spans:
                os.write(1, f"{os.getpid()} {span.attributes['fit.reach']}\\n".encode())
            return SpanExportResult.SUCCESS

    from ldfi import fit
    from ldfi.fit import reporting
    reporting.SETTLED_SECONDS = 0.05
    import httpcore
    assert fit.install()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(Said()))
    trace.set_tracer_provider(provider)
    time.sleep(1.0)
    import redis
    time.sleep(1.0)
    child = os.fork()
    time.sleep(1.0)
    if child:
        os.waitpid(child, 0)
        fit.install.__globals__["uninstall"]()
    os._exit(0)
    """
)


def test_a_process_reports_what_it_has_imported_and_so_does_a_forked_one() -> None:
    told = subprocess.run(
        [sys.executable, "-c", PROCESS],
        env={
            "FIT_KEYS": "k1:" + 16 * "x",
            "OTEL_SERVICE_NAME": "shop",
            "PYTHONPATH": ":".join(sys.path),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    lines = [line.split(" ", 1) for line in told.stdout.splitlines()]
    parent = [said.split(" ", 2)[2] for pid, said in lines if pid == lines[0][0]]
    child = [said.split(" ", 2)[2] for pid, said in lines if pid != lines[0][0]]
    http = "shop>http:* shop>library:fit shop>library:httpx"
    both = f"shop>db:* {http} shop>library:redis"
    assert parent == [http, both]  # what fit itself needs is not what the process uses
    assert child == [both]
