"""PyMongo, sync and asyncio, against a server of the kit: what callers see of faults is what they
see when it tears connections, is silent or gone; and nobody else sees anything of an injected one.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from contextvars import copy_context
from threading import Event
from typing import Any, Final, NamedTuple

import pymongo
import pytest
from opentelemetry.instrumentation.pymongo import PymongoInstrumentor
from pymongo import monitoring
from pymongo.errors import AutoReconnect, NetworkTimeout, PyMongoError
from pymongo.event_loggers import ConnectionPoolLogger

from ldfi.fit import contextless_calls, reporting
from ldfi.fit.clients import pymongo as ours
from tests.fit.clients.callers import NOBODY
from tests.fit.clients.contract import Requests, holds, seen, unharmed
from tests.fit.clients.dying import nowhere
from tests.fit.clients.seen_of_kinds import BY_THEMSELVES
from tests.kit.mongo import MongoServer, ignore, tear

POINT: Final = "api>db:FIND:shop/marks"
pytestmark = pytest.mark.servers

KINDS: Final = BY_THEMSELVES["PyMongo"]
PATIENCE: Final = 0.3
OPTIONS: Final = {
    "replicaSet": "rs",
    "serverSelectionTimeoutMS": 1_000 * PATIENCE,
    "heartbeatFrequencyMS": 500,  # no shorter is allowed
}


@contextmanager
def instrumentation(requests: Requests, **options: Any) -> Iterator[None]:
    """OpenTelemetry's instrumentation of the clients that are made now. It lasts as long as the
    process does, so another one begins anew."""
    instrumentor = PymongoInstrumentor()
    instrumentor.instrument(tracer_provider=requests.provider, **options)
    try:
        yield
    finally:
        instrumentor.uninstrument()
        instrumentor._commandtracer_instance = None
        monitoring._LISTENERS.command_listeners.clear()


@pytest.fixture
def instrumented(requests_made: Requests) -> Iterator[None]:
    with instrumentation(requests_made):
        yield


@contextmanager
def serving(host: str = "127.0.0.1") -> Iterator[MongoServer]:
    """A server, as long as this lasts."""
    made = MongoServer(host)
    try:
        yield made
    finally:
        made.kill()


@pytest.fixture
def server() -> Iterator[MongoServer]:
    with serving() as made:
        yield made


class Sync:
    """A client as a service with threads uses it."""

    def __init__(self, host: str, port: int, **options: Any) -> None:
        self.client: Any = pymongo.MongoClient(host, port, **{**OPTIONS, **options})

    def do(self, call: Callable[[Any], Any]) -> Any:
        return call(self.client)

    def close(self) -> None:
        self.client.close()


class Async:
    """A client as a service under asyncio uses it."""

    def __init__(self, host: str, port: int, **options: Any) -> None:
        async def make() -> Any:
            return pymongo.AsyncMongoClient(host, port, **{**OPTIONS, **options})

        self.runner = asyncio.Runner()
        self.client: Any = self.runner.run(make())

    def do(self, call: Callable[[Any], Any]) -> Any:
        async def run() -> Any:
            return await call(self.client)

        return self.runner.run(run(), context=copy_context())

    def close(self) -> None:
        self.do(lambda client: client.close())
        self.runner.close()


CLIENTS: Final[dict[str, type[Sync | Async]]] = {"PyMongo": Sync, "PyMongo, asyncio": Async}


@contextmanager
def connected(client: str, server: MongoServer | tuple[str, int], **options: Any) -> Iterator[Any]:
    """A client, which closes again."""
    host, port = server if isinstance(server, tuple) else (server.host, server.port)
    made = CLIENTS[client](host, port, **options)
    try:
        yield made
    finally:
        made.close()


def find(client: Any) -> Any:
    return client.shop.marks.find_one({"_id": 1})


def insert(client: Any) -> Any:
    return client.shop.marks.insert_one({"n": 1})


class Seen(NamedTuple):
    """What a caller sees of an exception, without what differs from call to call."""

    kind: str
    said: str
    cause: str
    labels: frozenset[str]
    code: object


def look(client: Any, call: Callable[[Any], Any] = find) -> Seen:
    try:
        client.do(call)
    except PyMongoError as failure:
        return Seen(
            type(failure).__name__,
            _hidden(str(failure)),
            _hidden(repr(failure.__cause__)),
            frozenset(failure._error_labels),
            (getattr(failure, "details", None), failure.timeout),
        )
    raise AssertionError("it went well")


def _hidden(said: str) -> str:
    said = re.sub(rf"\blocalhost\b|\b{re.escape(NOBODY)}\b", "HOST", said)
    return re.sub(r"\bid: \w{24}", "id", re.sub(r"(?<=:|\s)\d{4,5}(?=:|\))", "PORT", said))


def really(client: str, kind: str) -> Seen:
    """Bring it about."""
    if kind == "unresolved":
        with nowhere() as port, connected(client, (NOBODY, port)) as used:
            return look(used)
    with serving() as server, connected(client, server, socketTimeoutMS=patience(kind)) as used:
        assert used.do(find) is None
        server.does["find"] = ignore if kind == "timeout" else tear
        if kind != "refused":
            return look(used)
        server.kill()
        end = time.monotonic() + 30
        while not ((found := look(used)).kind == KINDS[kind] and "111" in found.said):
            assert time.monotonic() < end, f"its monitor does not notice: {found}"
        return found


def patience(kind: str) -> float | None:
    """How many milliseconds a client waits for an answer."""
    return 1_000 * PATIENCE if kind == "timeout" else None


MATRIX: Final = [(client, kind) for client in CLIENTS for kind in KINDS]


@pytest.mark.usefixtures("instrumented")
@pytest.mark.parametrize(("client", "kind"), MATRIX)
def test_a_caller_sees_what_it_really_sees(requests_made: Requests, client: str, kind: str) -> None:
    real = really(client, kind)
    with (
        serving("localhost" if kind == "unresolved" else "127.0.0.1") as server,
        connected(client, server, socketTimeoutMS=patience(kind)) as used,
    ):
        assert used.do(find) is None
        with requests_made.request(f"{kind}@{POINT}", delay_ms=5_000):
            began = time.monotonic()
            injected = look(used)
            took = time.monotonic() - began
        assert injected == real
        assert injected.kind == KINDS[kind]
        assert kind == "reset" or took >= PATIENCE
        run = requests_made.lineage()
        assert run.fired == {f"{kind}@{POINT}"}
        assert run.called == run.failed == {POINT}
        with requests_made.request(f"{kind}@{POINT}", arm="control", delay_ms=5_000):
            assert used.do(find) is None
        assert requests_made.lineage().would_fire == {f"{kind}@{POINT}"}


class Cleared(ConnectionPoolLogger):
    """Counts how often the pool was cleared, for all who use a client."""

    def __init__(self) -> None:
        self.count = 0

    def pool_cleared(self, event: object) -> None:
        self.count += 1


@pytest.mark.usefixtures("instrumented")
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("kind", ["error", *KINDS])
def test_nobody_else_learns_of_a_failure_that_was_injected(
    requests_made: Requests, client: str, kind: str
) -> None:
    cleared = Cleared()
    options = {"socketTimeoutMS": patience(kind), "event_listeners": [cleared]}
    with serving("localhost") as server, connected(client, server, **options) as used:
        used.do(find)
        for call, verb in ((find, "FIND"), (insert, "INSERT")):
            with requests_made.request(f"{kind}@api>db:{verb}:shop/marks", delay_ms=5_000):
                with suppress(PyMongoError):
                    used.do(call)
                assert used.client.topology_description.has_writable_server()
            used.do(call)
        assert server.asked["find"] == 2
    assert not cleared.count


@pytest.mark.usefixtures("instrumented")
@pytest.mark.parametrize("client", CLIENTS)
def test_one_name_at_both_ends(requests_made: Requests, server: MongoServer, client: str) -> None:
    def failed(answer: object) -> bool:
        return isinstance(answer, AutoReconnect) and "fault injected" in str(answer)

    def late(answer: object) -> bool:
        return isinstance(answer, NetworkTimeout)

    with connected(client, server, socketTimeoutMS=1_000 * PATIENCE) as used:
        call = seen(lambda: repr(used.do(find)))
        holds(requests_made, POINT, call, failed, late)
        unharmed(requests_made, ours, POINT, call, lambda answer: failed(answer) or late(answer))


COMMANDS: Final[dict[str, Callable[[Any], Any]]] = {
    "FIND:shop/marks": find,
    "INSERT:shop/marks": insert,
    "DELETE:shop/marks.*": lambda client: client.shop["marks.20261128"].delete_one({}),
    "FIND:mongodb/marks": lambda client: client["20261128"].marks.find_one(),
    "FIND:mongodb/many": lambda client: client["shop-20261128"].many.find_one(),
    "DROPDATABASE:shop": lambda client: client.drop_database("shop"),
    "DBSTATS:shop": lambda client: client.shop.command("dbStats"),
    "INSERT:shop/many": lambda client: client.shop.many.insert_many([{"n": n} for n in range(9)]),
}


@pytest.mark.parametrize("options", [{}, {"capture_statement": True}], ids=["plain", "statements"])
@pytest.mark.parametrize("compressed", [{}, {"compressors": "zlib"}], ids=["as it is", "zlib"])
def test_every_command_has_the_name_that_its_span_has(
    requests_made: Requests,
    server: MongoServer,
    options: dict[str, Any],
    compressed: dict[str, str],
) -> None:
    server.compresses = compressed.get("compressors", "")
    with (
        instrumentation(requests_made, **options),
        connected("PyMongo", server, **compressed) as used,
    ):
        for name, call in COMMANDS.items():
            with requests_made.request():
                used.do(call)
            assert requests_made.lineage().called == {f"api>db:{name}"}
            with requests_made.request(f"error@api>db:{name}"), pytest.raises(AutoReconnect):
                used.do(call)
            assert requests_made.lineage().fired == {f"error@api>db:{name}"}


@pytest.mark.usefixtures("instrumented")
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("call", [find, insert])
def test_a_fault_meets_the_second_try_of_pymongo_as_well_unless_it_is_for_the_first_alone(
    requests_made: Requests, server: MongoServer, client: str, call: Callable[[Any], Any]
) -> None:
    point = f"api>db:{call.__name__.upper()}:shop/marks"
    with connected(client, server) as used:
        used.do(find)
        with requests_made.request(f"reset@{point}"), pytest.raises(AutoReconnect):
            used.do(call)
        assert len(requests_made.calls()) == 2
        with requests_made.request(f"reset:1@{point}"):
            used.do(call)
        first, second = requests_made.calls()
        assert (first.attributes or {})["fit.fired"] == "reset"
        assert (second.attributes or {})["fit.let_through"] is True


@pytest.mark.usefixtures("instrumented")
@pytest.mark.parametrize("client", CLIENTS)
def test_what_a_client_does_for_itself_within_a_request_is_no_call_of_it(
    requests_made: Requests, server: MongoServer, client: str
) -> None:
    own = [f"error@api>db:{verb}:admin" for verb in ("HELLO", "ISMASTER", "PING")]
    with requests_made.request(*own), connected(client, server) as used:
        used.do(find)
        assert used.client.topology_description.has_writable_server()
    assert requests_made.lineage().fired == set()


@pytest.mark.usefixtures("instrumented")
def test_what_a_caller_cannot_see_is_not_claimed(
    requests_made: Requests, server: MongoServer
) -> None:
    point = "api>db:INSERT:shop/marks"
    with connected("PyMongo", server, w=0, socketTimeoutMS=1_000 * PATIENCE) as used:
        for kind in ("timeout", "reset", "sql:deadlock"):  # nobody waits for an answer
            with requests_made.request(f"{kind}@{point}", delay_ms=5_000):
                used.do(insert)
            assert requests_made.lineage().fired == set()
        with requests_made.request(f"unresolved@{POINT}"):  # it is called by its address
            used.do(find)
        assert requests_made.lineage().fired == set()
    with connected("PyMongo", server, serverSelectionTimeoutMS=10_001) as used:
        used.do(find)
        with requests_made.request(f"refused@{POINT}"):  # faults do not hang for so long
            used.do(find)
        assert requests_made.lineage().fired == set()


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.usefixtures("own_spans")
def test_without_an_instrumentation_a_call_that_is_hit_has_a_span_of_ours(
    requests_made: Requests, server: MongoServer, client: str
) -> None:
    with connected(client, server) as used, requests_made.request(f"error@{POINT}"):
        assert look(used).kind == "AutoReconnect"
    assert {span.name for span in requests_made.calls()} == {POINT}


@pytest.mark.parametrize(("traced", "counted"), [(True, {}), (False, {"pymongo": 1})])
def test_a_call_in_no_trace_is_counted_where_it_has_no_span_of_its_own(
    requests_made: Requests,
    server: MongoServer,
    monkeypatch: pytest.MonkeyPatch,
    traced: bool,
    counted: dict[str, int],
) -> None:
    told: dict[str, int] = {}
    monkeypatch.setattr(contextless_calls, "_calls", Counter())
    monkeypatch.setattr(reporting, "_bare", told)
    with (
        instrumentation(requests_made) if traced else nullcontext(),
        connected("PyMongo", server) as used,
    ):
        used.do(find)
    assert told == counted


@pytest.mark.usefixtures("instrumented")
def test_others_of_the_same_client_go_on_while_one_fails(
    requests_made: Requests, server: MongoServer
) -> None:
    over = Event()
    failures: list[Exception] = []
    done: Counter[int] = Counter()

    def others(number: int) -> None:
        while not over.is_set():
            try:
                used.do(find)
            except PyMongoError as failure:
                failures.append(failure)
            done[number] += 1

    with connected("PyMongo", server) as used, ThreadPoolExecutor(4) as pool:
        beside = [pool.submit(others, number) for number in range(4)]
        try:
            for kind in ("error", "reset", "refused", "delay"):
                with requests_made.request(f"{kind}@{POINT}", delay_ms=500), suppress(PyMongoError):
                    used.do(find)
                assert requests_made.lineage().fired == {f"{kind}@{POINT}"}
        finally:
            over.set()
        for each in beside:
            each.result(30)
    assert not failures
    assert min(done[number] for number in range(4)) > 0
