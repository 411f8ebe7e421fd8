"""Doors that strangers lean on: bombs, silence, floods. Whoever has a token gets through."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ldfi.experiments.api import connections, decoding, ingest, routes
from ldfi.experiments.api.decoding import MAX_SPANS, Decoding
from ldfi.experiments.api.problems import Problem
from ldfi.experiments.api.rate_limit import STRANGERS
from ldfi.experiments.store import tokens as stored
from ldfi.lineage.readers.batch import Batch
from ldfi.lineage.readers.otlp import decode_protobuf
from ldfi.lineage.readers.otlp_spans import count_spans
from ldfi.testing.live_service import served
from tests.experiments.api.test_api_ingest import spans
from tests.kit.service import GIVEN, bearer, client_of, problem, service

PROTOBUF = {"content-type": "application/x-protobuf"}
ZIPPED = {**PROTOBUF, "content-encoding": "gzip"}
INGEST = bearer(GIVEN["ingest"])
SECONDS = 30.0


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    return service(f"sqlite:///{tmp_path / 'x.sqlite3'}", quiet=0.05)


def empty_spans(count: int) -> bytes:
    """So many spans of two bytes each."""
    spans = b"\x12\x00" * count
    scope = b"\x12" + _length(len(spans)) + spans
    return b"\x0a" + _length(len(scope)) + scope


def _length(number: int) -> bytes:
    found = b""
    while number >= 0x80:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


def test_a_bomb_is_never_decoded(standing: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a few kilobytes that hold eight million spans, and fewer that still are too many
    bomb = gzip.compress(empty_spans(8_000_000))
    assert len(bomb) < 32_000
    monkeypatch.setattr(ingest, "decode_protobuf", _never)
    # When they are sent
    many = b'{"resourceSpans":[' + b"{}," * 1_000_001 + b"{}]}"
    answers = [
        standing.post("/v1/traces", content=content, headers={**headers, **INGEST})
        for content, headers in (
            (bomb, ZIPPED),
            (empty_spans(MAX_SPANS + 1), PROTOBUF),
            (many, {"content-type": "application/json"}),
        )
    ]
    # Then nobody decodes any of it
    assert [problem(answer) for answer in answers] == ["too-large"] * 3


def _never(body: bytes) -> Batch:
    raise AssertionError(f"{len(body)} bytes were decoded")


def test_what_repeats_itself_as_much_as_traces_do_is_taken(standing: httpx.Client) -> None:
    body = gzip.compress(spans(20_000))
    assert standing.post("/v1/traces", content=body, headers={**ZIPPED, **INGEST}).is_success


@given(st.lists(st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=3), max_size=3))
def test_spans_are_counted_as_whoever_decodes_them_finds_them(shape: list[list[list[int]]]) -> None:
    request = ExportTraceServiceRequest()
    wanted = 0
    for scopes in shape:
        group = request.resource_spans.add(schema_url="x")
        group.resource.attributes.add(key="service.name").value.string_value = "api"
        for scope_spans in scopes:
            scope = group.scope_spans.add()
            scope.scope.name = "any"
            for attributes in scope_spans:
                span = scope.spans.add(name="s", start_time_unix_nano=1, flags=3)
                for number in range(attributes):
                    span.attributes.add(key=f"a{number}").value.int_value = number
                wanted += 1
            wanted += not scope_spans  # one that holds nothing costs as much
        wanted += not scopes
    body = request.SerializeToString()
    assert count_spans(body, 1_000) == wanted
    assert count_spans(body, wanted - 1) >= wanted


@given(st.binary(max_size=300))
def test_nothing_breaks_the_count(body: bytes) -> None:
    assert count_spans(body, 50) <= 51


def test_others_are_answered_while_a_body_is_decoded(
    standing: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a body that takes as long to decode as somebody else needs to be answered
    answered, began, decode = threading.Event(), threading.Event(), decode_protobuf

    def slow(body: bytes) -> Batch:
        began.set()
        assert answered.wait(SECONDS), "nobody else was answered"
        return decode(body)

    monkeypatch.setattr(ingest, "decode_protobuf", slow)
    taken: list[httpx.Response] = []
    url, headers = standing.base_url.join("/v1/traces"), INGEST | PROTOBUF
    sender = threading.Thread(
        target=lambda: taken.append(httpx.post(url, content=spans(), headers=headers, timeout=60))
    )
    # When both ask
    sender.start()
    assert began.wait(SECONDS)
    assert standing.get("/healthz", timeout=SECONDS / 2).is_success
    answered.set()
    sender.join(SECONDS)
    # Then both are answered
    assert taken[0].is_success


def test_only_so_many_bodies_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "WAITING", 2)

    async def all_of_them() -> list[Any]:
        door, done = Decoding(), threading.Event()
        waiting = [asyncio.create_task(door.do(lambda: done.wait(SECONDS))) for _ in range(3)]
        await asyncio.sleep(0.05)
        done.set()
        return await asyncio.gather(*waiting, return_exceptions=True)

    *taken, refused = asyncio.run(all_of_them())
    assert taken == [True, True]
    assert isinstance(refused, Problem)
    assert refused.kind == "busy"


def test_strangers_do_not_use_up_the_attempts_of_those_who_have_a_token(app: FastAPI) -> None:
    with client_of(app, None) as client:
        # Given somebody whose token is in the database, and nobody has seen it yet
        with app.state.database.change(time.time()) as change:
            _, token = stored.create(change, "deploys", "operator")
        # When a neighbour of the same address has tried everything
        guesses = [bearer(f"guess-number-{number:04}") for number in range(STRANGERS.burst + 10)]
        tried = [client.get("/api/v1/status", headers=each) for each in guesses]
        # Then the neighbour waits, and nobody else
        assert problem(tried[-1]) == "rate-limited"
        assert client.get("/api/v1/status", headers=bearer(token)).is_success


class Impatient(connections.PatientConnection):
    """With little room, and little time."""

    seconds = 1.0
    most = 20


Connect = Callable[..., tuple[str, Callable[[], socket.socket]]]


@pytest.fixture
def listened(app: FastAPI) -> Iterator[Connect]:
    """Serves by such connections: the URL, and who connects to it."""
    with ExitStack() as stack:

        def serve(http: type) -> tuple[str, Callable[[], socket.socket]]:
            url = stack.enter_context(served(app, http=http))
            where = (urlsplit(url).hostname or "", urlsplit(url).port or 0)
            return url, lambda: stack.enter_context(socket.create_connection(where, SECONDS))

        yield serve


def test_silent_connections_give_way_and_are_closed(listened: Connect) -> None:
    url, connect = listened(Impatient)
    # Given more connections than there is room for, each silent or in the middle of a header
    silent = [connect() for _ in range(40)]
    for each in silent[::2]:
        each.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n")
    # Then others are answered all the same
    with httpx.Client(base_url=url, trust_env=False) as client:
        assert client.get("/healthz").is_success
        # And in the end nobody is there who does not say what they want
        for each in silent:
            with suppress(ConnectionError):
                assert each.recv(1) == b""
        assert client.get("/healthz").is_success


def test_headers_without_end_are_cut_off(listened: Connect) -> None:
    talker = listened(connections.PatientConnection)[1]()
    with pytest.raises(OSError):
        talker.sendall(b"GET / HTTP/1.1\r\n")
        for number in range(10_000):
            talker.sendall(b"x-%d: " % number + b"y" * 1_000 + b"\r\n")


def test_a_missing_body_is_not_awaited(listened: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "BODY_SECONDS", 0.3)
    slow = listened(connections.PatientConnection)[1]()
    slow.sendall(
        b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n"
        b"authorization: Bearer " + GIVEN["ingest"].encode() + b"\r\n"
        b"content-length: 1000\r\n\r\nx"
    )
    assert slow.recv(4096).startswith(b"HTTP/1.1 408 ")
