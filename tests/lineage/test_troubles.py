"""No attribute of a span costs more than that span: whatever it holds, the others are read."""

from __future__ import annotations

import itertools
import json
import logging
import time
from typing import Any

import pytest

from ldfi.fit.protocol.urls import Url, split_url
from ldfi.lineage import naming, operation
from ldfi.lineage.attributes import MOST_LETTERS, wanted
from ldfi.lineage.operation import MOST_FIELDS, calls_inside
from ldfi.lineage.readers import batch as reader
from ldfi.lineage.readers import otlp
from ldfi.lineage.readers.batch import Batch
from ldfi.lineage.readers.formats import read_message, read_value
from tests.lineage.troubles import (
    DOCUMENTS,
    KEYS,
    KINDS,
    LARGE,
    ODD,
    TEXTS,
    VALUES,
    WRITERS,
    cases,
    places,
    protobuf,
    with_instead,
)

TOGETHER = 2_000


@pytest.mark.parametrize("written", WRITERS)
def test_every_key_is_read_with_some_of_all_values(written: str) -> None:
    every = list(cases())[::61]  # a prime: each key meets each value at some kind sooner or later

    assert len(read_message(WRITERS[written](every)).spans) == len(every)


@pytest.mark.long
@pytest.mark.parametrize("written", WRITERS)
def test_every_key_is_read_with_every_value(written: str) -> None:
    every = cases()
    seen = 0
    while part := list(itertools.islice(every, TOGETHER)):
        batch = read_message(WRITERS[written](part))
        assert len(batch.spans) == len(part)
        seen += len(part)
    assert seen == len(KINDS) * len(KEYS) * len(VALUES) > 50_000


@pytest.mark.parametrize("format_", DOCUMENTS)
def test_whatever_a_span_is_made_of_the_others_are_read(format_: str) -> None:
    """At each place of a span something else, between two as they should be."""
    write, around = DOCUMENTS[format_]
    first, odd, last = write(1), write(2), write(3)
    good = [str(each.operation) for each in _read(around([first, last])).spans]
    for path in places(odd):
        for value in ODD:
            instead = with_instead(odd, path, value)
            batch = _read(around([first, instead, last]))
            read = [str(each.operation) for each in batch.spans]
            assert len(read) + batch.rejected == 3, (path, value)
            assert [read[0], read[-1]] == good, (path, value)
            for span in batch.spans:
                what = span.operation
                _ = what.code, what.failure, what.doubtful, calls_inside(what)
                assert json.dumps(span.operation.features).encode()


@pytest.mark.parametrize("field", ["attributes", "links", "events"])
def test_very_many_of_anything_are_one_span(field: str) -> None:
    first, odd, last = (_span(number) for number in (1, 2, 3))
    many = {**odd, field: odd[field] * (50_000 // len(odd[field]))}

    batch = _read(_around([first, many, last]))

    assert (len(batch.spans), batch.rejected) == (3, 0)
    assert len(batch.spans[1].operation.fields) <= MOST_FIELDS + 1  # and a doubt, if there is one


@pytest.mark.parametrize("text", LARGE, ids=lambda text: text[:4])
def test_a_long_text_costs_no_more_than_reading_it(text: str) -> None:
    """In time, where two minutes are for hundreds of megabytes, and in what is remembered."""
    first, last = _span(1), _span(3)
    keys = {form: key for key, (_, form) in wanted("").items()}.values()
    said = [{"key": key, "value": {"stringValue": text}} for key in keys]
    odd = [{**_span(2), "name": text, "attributes": said, "kind": kind} for kind in (0, 2, 3)]
    began = time.process_time()

    batch = _read(_around([first, *odd, last]))

    assert len(batch.spans) == 5
    for span in batch.spans[1:4]:
        assert all(len(value) <= MOST_LETTERS for _, value in span.operation.fields)
    assert time.process_time() - began < 5


def test_long_values_are_not_remembered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "_memory", otlp._Memory())
    monkeypatch.setattr(otlp, "_MEMORY_BYTES", 100_000)
    for number in range(50):
        long = f"{number} " + "x" * 10_000
        otlp.decode_in_python(protobuf([(2, {"exception.stacktrace": long, "unheard.of": long})]))
        assert otlp._memory.size + otlp._memory.attributes[2].size < 130_000


def _read(document: Any) -> Batch:
    """Read a document by the extension, where it can, and without it."""
    text = json.dumps(document).encode()
    batch = read_message(text)
    assert [str(each) for each in batch.spans] == [
        str(each) for each in read_value(json.loads(text)).spans
    ]
    return batch


_span, _around = DOCUMENTS["otlp"]


@pytest.mark.parametrize("url", TEXTS)
def test_a_url_is_cut_whatever_it_is(url: str) -> None:
    parts = split_url(url)

    assert parts.port is None or 0 <= parts.port < 65536
    assert "?" not in parts.path


def test_what_can_be_read_of_a_broken_url_is_read() -> None:
    assert split_url("http://[x]/a?b=1#c") == Url("http", "", None, "/a", "b=1")
    assert split_url("http://h:99999999999/a") == Url("http", "h", None, "/a", "")
    assert split_url("//[") == Url()
    assert split_url("HTTP://Shop:80/a") == Url("http", "shop", 80, "/a", "")


@pytest.mark.parametrize("written", WRITERS)
def test_a_span_that_nobody_can_read_is_refused_alone_and_told_once(
    written: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Stands for what nobody has thought of: an error in our own code, for one span of three."""
    point_of = naming.point_of

    def stumbling(service: str, name: str, kind: str, fields: naming.Fields) -> str | None:
        if fields.get("host") == "unheard-of":
            raise ZeroDivisionError("of nobody's making")
        return point_of(service, name, kind, fields)

    monkeypatch.setattr(naming, "point_of", stumbling)
    operation.remembered.cache_clear()
    monkeypatch.setattr(otlp, "_memory", otlp._Memory())
    reader._told.clear()
    many = [(3, {"http.request.method": "GET", "server.address": f"host{n}"}) for n in range(2)]
    many.insert(1, (3, {"http.request.method": "GET", "server.address": "unheard-of"}))

    with caplog.at_level(logging.WARNING):
        batch = read_message(WRITERS[written](many))
        read_message(WRITERS[written](many))

    assert (len(batch.spans), batch.rejected) == (2, 1)
    said = [each.getMessage() for each in caplog.records]
    assert len(said) == 1
    assert "ZeroDivisionError" in said[0]
    assert "unheard-of" in said[0]
