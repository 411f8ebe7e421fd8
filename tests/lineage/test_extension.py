"""The extension in Rust reads what the reference in Python reads, and fails as that does."""

from __future__ import annotations

import gzip
import importlib
import tarfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.ingest import Traffic
from ldfi.experiments.streams.otlp import from_json
from ldfi.lineage import attributes, machine_code
from ldfi.lineage.readers import otlp, rust
from ldfi.lineage.readers.batch import Batch
from ldfi.lineage.readers.otlp import decode_in_python, decode_protobuf
from tests.kit.spans import of_service, request, wire
from tests.lineage import native
from tests.lineage.native import BODIES, DATA, FILES, outcome, told
from tests.lineage.otlp_bodies import NAMES, damaged, paths, requests, urls, wires

pytestmark = pytest.mark.languages

native.required()


def in_rust(body: bytes) -> Batch | None:
    """What the extension has read by itself; None where it left a body to the reference."""
    (batch,) = otlp._extension.read([body])
    return batch


def assert_alike(body: bytes) -> None:
    assert outcome(decode_protobuf, body) == outcome(decode_in_python, body)


def recorded() -> Iterator[bytes]:
    """Bodies that services have exported, and lines of the Collector as bodies."""
    with tarfile.open(DATA / "hotrod.otlp-protobuf.tar.gz") as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None:
                yield file.read()
    for path in FILES:
        with gzip.open(path) as lines:
            yield from map(from_json, lines)


@settings(max_examples=BODIES)
@given(requests())
def test_a_request_is_read_alike_and_by_the_extension(body: bytes) -> None:
    assert_alike(body)
    assert in_rust(body) is not None


@settings(max_examples=BODIES)
@given(wires)
@example(b"")
@example(b"\x0a")
@example(b"\x0b\x0c")
@example(b"\x0a\x00")
@example(b"\x0a" + b"\xff" * 9 + b"\x01")
@example(b"\x0a\xff\xff\xff\xff\x07")
def test_whatever_is_on_the_wire_is_read_alike(body: bytes) -> None:
    assert_alike(body)
    assert_alike(b"\x0a" + bytes([len(body) % 128]) + body[: len(body) % 128])


@settings(max_examples=BODIES)
@given(damaged(requests()))
def test_a_damaged_request_is_read_alike(body: bytes) -> None:
    assert_alike(body)


@settings(max_examples=BODIES // 2)
@given(damaged(st.sampled_from(sorted(recorded(), key=len)[:40])))
def test_a_damaged_recording_is_read_alike(body: bytes) -> None:
    assert_alike(body)


def test_recordings_are_read_alike_and_by_the_extension() -> None:
    bodies = [*recorded()]
    assert sum(len(decode_in_python(body).spans) for body in bodies) > 1_000
    for body in bodies:
        assert told(in_rust(body)) == told(decode_in_python(body))


def test_traffic_with_new_values_in_every_trace_is_read_alike() -> None:
    for body in Traffic(seed=3, groups=4).bodies(2_000):
        assert told(in_rust(body)) == told(decode_in_python(body))


def test_more_values_than_are_remembered_are_read_alike() -> None:
    body = _many(70_000)
    for _ in range(2):
        batch = in_rust(body)
        assert batch is not None
        named = [dict(span.operation.fields)["host"] for span in batch.spans]
        assert named == [f"host{number}" for number in range(70_000)]


def _many(hosts: int) -> bytes:
    spans = (wire({"server.address": f"host{number}"}, kind=3) for number in range(hosts))
    return request(of_service("", *spans)).SerializeToString()


def test_threads_read_side_by_side() -> None:
    bodies = list(Traffic(seed=4, groups=4).bodies(4_000))
    reading = rust.Extension(otlp._Reference())
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(reading.read, [bodies] * 5))
    assert all(batches == found[0] for batches in found)  # one operation for what means the same
    assert list(map(told, found[0])) == [told(decode_in_python(body)) for body in bodies]


@pytest.mark.parametrize(
    ("form", "reference"),
    [
        ("url", attributes.template_url),
        ("called_url", attributes.template_called_url),
        ("path", attributes.template_any_path),
    ],
)
def test_what_is_made_equal_says_the_same(form: str, reference: Callable[[str], str]) -> None:
    @settings(max_examples=BODIES)
    @given(urls | paths)
    def holds(value: str) -> None:
        same = _module().same_value(form, value)
        assert _said(reference, same) == _said(reference, value)

    holds()


@settings(max_examples=BODIES)
@given(urls | paths)
def test_identifiers_are_found_as_the_reference_finds_them(value: str) -> None:
    if value.isascii() and "\n" not in value:
        expected = attributes._IDENTIFIER.sub("/0", value)
        assert _module().same_value("path", value) == expected


def _said(reference: Callable[[str], str], value: str) -> str:
    try:
        return reference(value)
    except ValueError as error:
        return repr(error)


def _module() -> Any:
    return importlib.import_module("ldfi_native")


def test_where_an_error_of_ours_ends_it_the_reference_reads_and_the_next_body_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no meaning")

    (body,) = Traffic(seed=5, groups=1).groups[0][1][:1]
    asking = rust.Extension(otlp._Reference())
    with monkeypatch.context() as patched:
        patched.setattr(otlp._Reference, "operation", fail)
        assert asking.read([body]) == [None]
    assert told(asking.read([body])[0]) == told(decode_in_python(body))


def test_an_extension_of_another_release_is_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_module(), "INTERFACE", machine_code.INTERFACE + 1)
    machine_code.extension.cache_clear()
    try:
        (body,) = Traffic(seed=5, groups=1).groups[0][1][:1]
        assert in_rust(body) is None
        assert told(decode_protobuf(body)) == told(decode_in_python(body))
        assert "not of this ldfi" in caplog.text
    finally:
        machine_code.extension.cache_clear()


def test_every_wanted_attribute_is_known_to_it() -> None:
    assert {name.decode() for _, name, _ in otlp._Reference().wanted()} == set(NAMES)
