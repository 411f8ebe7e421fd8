"""No attribute of a span costs more than that span: whatever it holds, the others are read."""

from __future__ import annotations

import itertools
import logging

import pytest

from ldfi.fit.protocol.urls import Url, split_url
from ldfi.lineage import naming, operation
from ldfi.lineage.readers import batch as reader
from ldfi.lineage.readers import otlp
from ldfi.lineage.readers.formats import read_message
from tests.lineage.troubles import KEYS, KINDS, TEXTS, VALUES, WRITERS, cases

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
    operation.operation.cache_clear()
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
