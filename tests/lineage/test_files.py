"""Real files of every format are read whole, and damaged ones raise nothing but our own errors."""

from __future__ import annotations

import base64
import gzip
import io
import json
import random
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ldfi.lineage.errors import UnreadableTraces
from ldfi.lineage.lineage import learn
from ldfi.lineage.readers import compressed, files, split
from ldfi.lineage.readers.files import read_file, read_stream
from ldfi.lineage.span import Span, Trace
from tests.kit.spans import request, wire

DATA = Path(__file__).parents[1] / "data"
REAL = sorted(p for p in DATA.iterdir() if ".outcomes." not in p.name and p.suffix != ".md")


def unzipped(path: Path) -> bytes:
    raw = path.read_bytes()
    return gzip.decompress(raw) if path.suffix == ".gz" else raw


def spans_of(raw: bytes) -> list[Span]:
    return [span for batch in read_stream(io.BytesIO(raw)) for span in batch.spans]


def count(path: Path) -> int:
    """The spans of a file, counted without any of our code."""
    raw = unzipped(path)
    if ".tar" in path.name:
        return sum(_count_protobuf(body) for body in _members(raw))
    documents = [json.loads(raw)] if path.suffix == ".json" or ".jaeger.json" in path.name else None
    documents = documents or [json.loads(line) for line in raw.splitlines()]
    return sum(_count_json(document) for document in documents)


def _members(raw: bytes) -> Iterator[bytes]:
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        for member in filter(tarfile.TarInfo.isfile, archive):
            file = archive.extractfile(member)
            assert file is not None
            yield file.read()


def _count_protobuf(body: bytes) -> int:
    request = ExportTraceServiceRequest.FromString(body)
    return sum(len(s.spans) for group in request.resource_spans for s in group.scope_spans)


def _count_json(value: Any) -> int:
    """Every JSON object that is a span, whatever the format calls its id."""
    if isinstance(value, list):
        return sum(map(_count_json, value))
    if not isinstance(value, dict):
        return 0
    if {"traceId", "spanId", "name"} <= value.keys() or {"traceId", "id"} <= value.keys():
        return 1
    if {"traceID", "spanID", "operationName"} <= value.keys():
        return 1  # references embed whole parents: what is inside a span is none of its own
    return sum(map(_count_json, value.values()))


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_no_span_of_a_real_file_is_lost(path: Path) -> None:
    batches = list(read_file(path))
    assert sum(len(batch.spans) for batch in batches) == count(path) > 0
    assert sum(batch.rejected for batch in batches) == 0


def test_the_same_requests_in_three_formats_have_the_same_lineage() -> None:
    # Given two requests as OTLP-JSON, as Jaeger's UI gives them and as Jaeger's v3 API does
    names = ("hotrod.otlp.jsonl.gz", "hotrod.jaeger.json.gz", "hotrod.jaeger-v3.jsonl.gz")
    learned = []
    for name in names:
        traces: dict[str, list[Span]] = {}
        for span in spans_of((DATA / name).read_bytes()):
            traces.setdefault(span.trace_id, []).append(span)
        runs = [learn(Trace.of(trace_id, spans)) for trace_id, spans in sorted(traces.items())]
        learned.append(
            [(r.support, r.failed, r.features, r.callees, r.root_error) for r in runs if r]
        )
    # Then all three say the same
    assert len(learned[0]) == 2
    assert learned[0] == learned[1] == learned[2]


def test_what_tempo_answers_is_what_it_was_given() -> None:
    # Given OTLP, and the same as Tempo writes it: batches, perhaps within a trace, ids in base64
    raw = unzipped(DATA / "hotrod.otlp.jsonl.gz").splitlines()
    documents = [json.loads(line) for line in raw]
    batches = [_in_base64(group) for each in documents for group in each["resourceSpans"]]
    for form in ({"batches": batches}, {"trace": {"batches": batches}, "metrics": {}}):
        # Then the same spans are read, in one line or in many
        for indent in (None, 2):
            read = spans_of(json.dumps(form, indent=indent).encode())
            assert list(map(repr, read)) == list(map(repr, spans_of(b"\n".join(raw))))
    assert spans_of(b"\n".join(json.dumps({"trace": each}).encode() for each in documents))


def _in_base64(group: Any) -> Any:
    if isinstance(group, list):
        return [_in_base64(each) for each in group]
    if not isinstance(group, dict):
        return group
    ids = {"traceId", "spanId", "parentSpanId"}
    return {
        key: base64.b64encode(bytes.fromhex(each)).decode() if key in ids else _in_base64(each)
        for key, each in group.items()
    }


def test_a_large_document_is_read_through_a_small_window(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a document larger than what is read at once, and larger than the window
    path = DATA / "hotrod.jaeger.json.gz"
    whole = spans_of(path.read_bytes())
    monkeypatch.setattr(files, "_MAX_LINE", 1000)
    for window in (7, 300, 4096):
        monkeypatch.setattr(split, "WINDOW", window)
        assert spans_of(path.read_bytes()) == whole


def test_a_bad_line_among_good_ones_is_counted() -> None:
    line = unzipped(DATA / "hotrod.otlp.jsonl.gz").splitlines()[0]
    batches = list(read_stream(io.BytesIO(b"\n".join([line, b'{"resourceSp', b"", line]))))
    assert [batch.rejected for batch in batches] == [0, 1, 0]


@pytest.mark.parametrize("size", [91, 123])
def test_protobuf_that_begins_like_json_is_read(size: int) -> None:
    bare = request(wire(name="")).resource_spans[0].ByteSize()
    raw = request(wire(name="n" * (size - bare - 2))).SerializeToString()
    assert raw[:2] == bytes([0x0A, size])
    assert [span.span_id for span in spans_of(raw)] == [(b"s" * 8).hex()]


def test_protobuf_messages_behind_their_lengths_are_read() -> None:
    (body, *_) = _members(unzipped(DATA / "hotrod.otlp-protobuf.tar.gz"))
    framed = len(body).to_bytes(4, "big") + body
    assert len(spans_of(framed * 3)) == 3 * len(spans_of(body)) > 0


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"# a readme\n", "text"),
        (b"[1, 2]", "int"),
        (b'{"a": 1}\n{"a": 2}\n', "object with a"),
        (b"\x1f\x8b\x08\x00garbage", "damaged"),
        (b"\x28\xb5\x2f\xfdgarbage", "damaged"),
        (b'{"data": [{"traceID": "1"', "no JSON"),
        (b'{"traces": [{"traceID": "1", "rootServiceName": "a"}]}', "a search of Tempo"),
        (b'{"traces": [{"traceID": "1", "spanSet": {"matched": 1}}], "metrics": {}}', "of Tempo"),
        (b'{"traceID": "1", "rootTraceName": "a", "durationMs": 7}', "a search of Tempo"),
        (b'{"traces": [], "metrics": {"inspectedBytes": "1"}}', "a search of Tempo"),
        (b"[" * 100_000, "no JSON"),
    ],
)
def test_what_cannot_be_read_says_why(raw: bytes, why: str) -> None:
    with pytest.raises(UnreadableTraces, match=why):
        spans_of(raw)


@pytest.mark.parametrize("name", ["hotrod.otlp.jsonl.gz", "hotrod.otlp-protobuf.tar.gz"])
def test_zstd_is_read_or_refused_by_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = unzipped(DATA / name)
    packed = compressed.zstd().compress(raw)
    assert spans_of(packed) == spans_of(gzip.compress(packed)) == spans_of(raw)
    assert compressed.decompressed(packed, "zstd") == raw
    # What is cut short, or read where nothing can, says so
    with pytest.raises(UnreadableTraces, match="damaged"):
        spans_of(packed[:-9])
    monkeypatch.setattr(compressed, "_MODULES", ("ldfi.no.such.module",))
    with pytest.raises(UnreadableTraces, match="this is zstd: unpack it first"):
        spans_of(packed)


@pytest.mark.parametrize(
    ("body", "encoding"),
    [(b"x", "gzip"), (b"x", "zstd"), (gzip.compress(b"x")[:-3], "gzip"), (b"", "br")],
    ids=["no gzip", "no zstd", "cut short", "unknown"],  # a gzip says when it was made
)
def test_a_body_that_cannot_be_decompressed_says_so(body: bytes, encoding: str) -> None:
    with pytest.raises(UnreadableTraces, match=encoding):
        compressed.decompressed(body, encoding)


def test_spans_of_the_console_are_read() -> None:
    # Given what OpenTelemetry's exporter to the console writes
    span = {
        "name": "GET",
        "context": {"trace_id": "0x" + "1" * 32, "span_id": "0x" + "2" * 16, "trace_state": "[]"},
        "kind": "SpanKind.CLIENT",
        "parent_id": "0x" + "3" * 16,
        "start_time": "2026-11-27T13:17:10.005815Z",
        "end_time": "2026-11-27T13:17:10.012459Z",
        "status": {"status_code": "ERROR"},
        "attributes": {"http.method": "GET", "http.url": "http://stock/x", "list": ["a"]},
        "events": [],
        "links": [],
        "resource": {"attributes": {"service.name": "shop"}, "schema_url": ""},
    }
    for form in (span, [span], json.dumps(span, indent=4)):
        (read,) = spans_of((form if isinstance(form, str) else json.dumps(form)).encode())
        assert read.operation.point == "shop>http:GET:stock/x"
        assert (read.operation.failed, read.end - read.start) == (True, 6_644_000)
        assert (read.span_id, read.parent_id) == ("2" * 16, "3" * 16)


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_damaged_real_files_raise_nothing_but_our_own_error(path: Path) -> None:
    # Given a real file, compressed or not, with some bytes changed, cut or doubled
    rng = random.Random(path.name)
    for raw in (path.read_bytes(), unzipped(path)[:40_000]):
        for _ in range(15):
            damaged = bytearray(raw)
            for _ in range(rng.randrange(1, 8)):
                at = rng.randrange(len(damaged))
                match rng.randrange(3):
                    case 0:
                        damaged[at] = rng.randrange(256)
                    case 1:
                        del damaged[at : at + rng.randrange(1, 50)]
                    case _:
                        damaged[at:at] = damaged[at : at + rng.randrange(1, 50)]
            try:
                spans_of(bytes(damaged))
            except UnreadableTraces:
                continue
