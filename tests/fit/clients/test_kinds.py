"""What a caller sees of a kind of fault is what it sees when that really happens.

Each client calls a real server that really fails, and then one that is well, under the fault.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from concurrent import futures
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import aiohttp
import grpc
import pytest
import requests
from requests.adapters import HTTPAdapter

from ldfi.fit.answers import answer_of, wire
from ldfi.fit.protocol.kinds import KINDS, NAMED, family, lengths
from tests.fit.clients import proofs
from tests.fit.clients.callers import (
    CALLERS,
    GRPC,
    NOBODY,
    PATIENCE,
    PIECE,
    REDIS,
    STREAMING,
    Sight,
    calling,
    look,
)
from tests.fit.clients.contract import Requests
from tests.fit.clients.dying import Behaviour, dying, hang, nobody, nowhere, reset, says
from tests.fit.clients.seen_of_kinds import BY_THEMSELVES, SAME, SEEN
from tests.fit.kinds import LISTED

pytestmark = pytest.mark.usefixtures("own_spans")

LONGER_MS: Final = 60_000
REDIS_SAYS: Final = {
    "redis:loading": b"-LOADING Redis is loading the dataset in memory\r\n",
    "redis:readonly": b"-READONLY You can't write against a read only replica.\r\n",
}
FINE: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-length: 1007\r\nconnection: close\r\n\r\n" + bytes(range(19)) * 53
)
BEARABLE: Final = frozenset({"slow:1"})
"""What ends well: no piece takes as long as the callers' timeouts."""


def expected(client: str) -> dict[str, str]:
    return SEEN[SAME.get(client, client)]


MATRIX: Final = [(client, kind) for client in CALLERS for kind in expected(client)]


def host(kind: str) -> str:
    """Whom a caller calls to which this is to happen."""
    return "localhost" if kind in NAMED else "127.0.0.1"


def shown(kind: str) -> str:
    """What spans say of a kind."""
    return family(kind) if kind in BEARABLE else kind


@contextmanager
def grpc_server(code: str = "") -> Iterator[int]:
    """A gRPC server that answers, with a status where one is given."""

    def get(request: bytes, context: grpc.ServicerContext) -> bytes:
        if code:
            context.abort(grpc.StatusCode[code], "fault injected")
        return request

    server = grpc.server(futures.ThreadPoolExecutor(1))
    handlers = {"Get": grpc.unary_unary_rpc_method_handler(get)}
    service = grpc.method_handlers_generic_handler("shop.Prices", handlers)
    server.add_generic_rpc_handlers((service,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield port
    server.stop(None).wait(5)


def redis_server(behaviour: Behaviour) -> AbstractContextManager[int]:
    """A server that shakes hands as Redis does, and behaves so when the command comes."""

    def speak(connection: socket.socket, received: bytes = b"") -> None:
        while b"SET\r\n" not in received.replace(b"SETINFO", b""):
            connection.sendall(b"+OK\r\n" * received.count(b"*"))
            received = connection.recv(65536)
            if not received:
                return
        behaviour(connection)
        if behaviour is hang:
            time.sleep(3 * PATIENCE)

    return dying(speak, first=True)


def really(client: str, kind: str) -> AbstractContextManager[int]:
    """A server to which this really happens."""
    if kind == "refused":
        return nobody()
    if kind in NAMED:
        return nowhere()
    if client in GRPC:
        return dying(hang) if kind == "timeout" else grpc_server(kind.partition(":")[2])
    behaviours: dict[str, Behaviour] = {"reset": reset, "timeout": hang}
    if client in REDIS:
        behaviours["redis:lost"] = lambda connection: connection.close()
        behaviours |= {each: says(words) for each, words in REDIS_SAYS.items()}
        return redis_server(behaviours[kind])
    if kind in BEARABLE:
        return dying(says(FINE, over=float(lengths(kind))))
    answer = answer_of(kind)
    return dying(behaviours[kind] if answer is None else says(wire(answer)))


def well(client: str) -> AbstractContextManager[int]:
    """A server to which nothing happens."""
    if client in GRPC:
        return grpc_server()
    return redis_server(says(b"+OK\r\n")) if client in REDIS else dying(says(FINE))


def claims(requests: Requests) -> set[tuple[str, str, Any]]:
    """What the spans say of faults: (attribute, kind, point)."""
    return {
        (name, str(attributes[name]), attributes.get("fit.point"))
        for attributes in (span.attributes or {} for span in requests.calls())
        for name in ("fit.fired", "fit.would_fire")
        if name in attributes
    }


def alike(injected: Sight, real: Sight) -> bool:
    """Whether a caller could not tell: beneath its library's own errors the real one may go on."""
    if injected.codes != real.codes or injected.head != real.head:
        return False
    return injected.words == real.words[: len(injected.words)]


@pytest.mark.parametrize(("client", "kind"), MATRIX)
def test_a_caller_sees_what_it_really_sees(requests_made: Requests, client: str, kind: str) -> None:
    caller = CALLERS[client]
    patience = PATIENCE if kind == "timeout" else None  # or a slow machine is what times out
    with really(client, kind) as port, calling(NOBODY if kind in NAMED else host(kind)):
        real = look(lambda: caller.call(port, patience))
    with well(client) as port, calling(host(kind)):
        point = caller.point(port)
        with requests_made.request(f"{kind}@{point}", delay_ms=LONGER_MS):
            began = time.monotonic()
            injected = look(lambda: caller.call(port, patience))
            took = time.monotonic() - began

    assert injected.head == expected(client)[kind]
    assert alike(injected, real), (injected, real)
    assert claims(requests_made) == {("fit.fired", shown(kind), point)}
    if kind == "timeout":
        assert took >= PATIENCE
    if kind in BEARABLE:
        assert took >= float(lengths(kind))


@pytest.mark.parametrize("client", STREAMING)
def test_a_body_is_cut_while_it_streams(requests_made: Requests, client: str) -> None:
    """The answer comes, and what was sent of it; then it fails."""
    streamed, cut = STREAMING[client], answer_of("truncated")
    assert cut is not None
    with really(client, "truncated") as port:
        real = streamed(port)
    with well(client) as port, requests_made.request(f"truncated@{CALLERS[client].point(port)}"):
        injected = streamed(port)

    assert injected == real
    assert injected.status == 200
    assert injected.read == cut.body[: len(injected.read)]
    assert len(cut.body) - len(injected.read) < PIECE  # some give whole pieces only
    assert injected.failure == expected(client)["truncated"]


@pytest.mark.parametrize("client", CALLERS)
def test_in_control_nothing_happens_all_would_have(requests_made: Requests, client: str) -> None:
    caller = CALLERS[client]
    with well(client) as port:
        usual = look(lambda: caller.call(port, 20.0))
        for kind in expected(client):
            with calling(host(kind)):
                point = caller.point(port)
                with requests_made.request(f"{kind}@{point}", arm="control", delay_ms=LONGER_MS):
                    assert look(lambda: caller.call(port, 20.0)) == usual
            assert claims(requests_made) == {("fit.would_fire", shown(kind), point)}


@pytest.mark.parametrize("client", CALLERS)
def test_a_kind_that_is_not_native_does_nothing(requests_made: Requests, client: str) -> None:
    caller = CALLERS[client]
    words = {kind.partition(":")[0] for kind in expected(client)} - NAMED  # an address is called
    foreign = [each for each in LISTED if each.partition(":")[0] not in words | set(KINDS)]
    assert len(foreign) > 5
    with well(client) as port:
        usual = look(lambda: caller.call(port, None))
        point = caller.point(port)
        for kind in (*foreign[:3], *foreign[-3:], *NAMED):
            for arm in ("treatment", "control"):
                with requests_made.request(f"{kind}@{point}", arm=arm):
                    assert look(lambda: caller.call(port, None)) == usual
                assert claims(requests_made) == set()


@pytest.mark.parametrize("client", CALLERS)
@pytest.mark.parametrize("arm", ["treatment", "control"])
def test_no_call_times_out_before_its_time(requests_made: Requests, client: str, arm: Any) -> None:
    """A caller with no timeout, or a longer one than the fault may hang, has none injected."""
    caller = CALLERS[client]
    with well(client) as port:
        usual = look(lambda: caller.call(port, None))
        fault = f"timeout@{caller.point(port)}"
        with requests_made.request(fault, arm=arm, delay_ms=LONGER_MS):
            assert look(lambda: caller.call(port, None)) == usual
        assert claims(requests_made) == set()
        with requests_made.request(fault, arm=arm, delay_ms=10_000):
            assert look(lambda: caller.call(port, 20.0)) == usual
        assert claims(requests_made) == set()


def test_aiohttp_drops_a_connection_that_sent_nothing(requests_made: Requests, server: str) -> None:
    url, point = f"{server}/titles/17", f"api>http:GET:{server.removeprefix('http://')}/titles/*"
    answers = {"status:404": 404, "status:503": 503, "corrupt": 200}

    async def within() -> None:
        connector = aiohttp.TCPConnector(limit=1)
        async with aiohttp.ClientSession(connector=connector) as session:
            for kind, status in answers.items():
                with requests_made.request(f"{kind}@{point}"):
                    async with session.get(url) as answer:
                        assert (answer.status, await answer.read()) != (200, usual)
                        assert answer.status == status
                async with session.get(url) as answer:
                    assert await answer.read() == usual

    usual = requests.get(url, timeout=5).content
    asyncio.run(within())


def test_a_pool_gets_its_connection_back_after_it(requests_made: Requests, server: str) -> None:
    url, point = f"{server}/titles/17", f"api>http:GET:{server.removeprefix('http://')}/titles/*"
    with requests.Session() as session:
        session.mount("http://", HTTPAdapter(pool_connections=1, pool_maxsize=1, pool_block=True))
        for kind in ("status:404", "empty", "corrupt", "truncated", "refused", "reset"):
            with requests_made.request(f"{kind}@{point}"):
                look(lambda: session.get(url, timeout=5))
            assert session.get(url, timeout=5).status_code == 200


def test_every_client_stands_in_the_table() -> None:
    same = {client for client, other in SAME.items() if other in SEEN}
    assert set(SEEN) | same == set(CALLERS)
    assert set(SAME.values()) <= set(SEEN) | set(BY_THEMSELVES)
    assert not set(BY_THEMSELVES) & set(CALLERS)


def test_the_table_has_what_is_proved_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proofs.tables() == (SEEN, BY_THEMSELVES)
    monkeypatch.setitem(BY_THEMSELVES, "a client of tomorrow", {"reset": "OSError"})
    with pytest.raises(ValueError, match="a client of tomorrow"):
        proofs.tables()
