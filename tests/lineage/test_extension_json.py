"""OTLP as JSON: the extension reads what Python reads, and fails as that does."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import example, given, settings

from ldfi.lineage.readers.otlp import decode_json_natively
from ldfi.lineage.readers.otlp_json import decode_json, decode_json_in_python
from tests.lineage import native
from tests.lineage.native import BODIES, FILES, outcome, told
from tests.lineage.otlp_bodies import damaged
from tests.lineage.otlp_documents import odd, usual, written

pytestmark = pytest.mark.languages

native.required()


def assert_alike(body: bytes) -> None:
    assert outcome(decode_json, body) == outcome(decode_json_in_python, body)


@settings(max_examples=BODIES)
@given(written(usual))
def test_a_document_is_read_alike_and_by_the_extension(body: bytes) -> None:
    assert_alike(body)
    if b"e+" not in body and b"ud8" not in body:
        assert decode_json_natively(body) is not None


@settings(max_examples=BODIES)
@given(written(odd()))
@example(b'{"resourceSpans": [], "resourceSpans": {}}')
@example(b'{"resourceSpans": []}\xef\xbb\xbf')
@example(b"[" * 100_000)
def test_an_odd_document_is_read_alike(body: bytes) -> None:
    assert_alike(body)


@settings(max_examples=BODIES)
@given(damaged(written(usual)))
def test_a_damaged_document_is_read_alike(body: bytes) -> None:
    assert_alike(body)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_lines_of_the_collector_are_read_alike_and_by_the_extension(path: Path) -> None:
    with gzip.open(path) as lines:
        for line in lines:
            assert told(decode_json_natively(line)) == told(decode_json_in_python(line))
