"""A context belongs to its request: whatever a treated request starts and leaves behind is let
through once it has been answered, and nobody else is hurt by it."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpcore
import httpx
import pytest
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ldfi import fit
from ldfi.experiments.domain.judging.bystanders import Bystanders
from ldfi.experiments.domain.traffic.baseline import Spell
from ldfi.fit.protocol.context import Arm, encode
from ldfi.fit.protocol.faults import Fault
from tests.fit.applications import KEYS, Recorded, recording

POINT = "api>http:GET:stock/left"
WAIT = 20.0
REQUESTS = 3
WAITING = 5
"""Requests that wait for one call, the treated one among them."""


class Wire(httpcore.MockBackend):
    """A network that answers at once, and keeps what it is sent."""

    def __init__(self, sent: list[bytes]) -> None:
        super().__init__([b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"])
        self._sent = sent

    def connect_tcp(self, *given: Any, **named: Any) -> Any:
        stream: Any = super().connect_tcp(*given, **named)
        stream.write = lambda piece, **_: self._sent.append(piece)
        return stream


class Shop:
    """Needs stock, in the request or in what it leaves behind; ``seen`` is what that came to, and
    ``sent`` what the stock was sent."""

    def __init__(self) -> None:
        self.seen: list[object] = []
        self.sent: list[bytes] = []
        self.answered, self.over = asyncio.Event(), threading.Event()
        self.pool = ThreadPoolExecutor(4)
        self.tasks: list[asyncio.Future[Any]] = []
        self.orders: asyncio.Queue[int] = asyncio.Queue()
        self.mails: queue.Queue[int] = queue.Queue()
        self.running = False
        self.flight: asyncio.Future[None] | None = None

    def ask(self) -> None:
        """Ask beneath which a fault would be."""
        transport = httpx.HTTPTransport(trust_env=False)
        transport._pool = httpcore.ConnectionPool(network_backend=Wire(self.sent))
        with httpx.Client(transport=transport) as client:
            try:
                self.seen.append(client.get("http://stock/left").status_code)
            except httpx.HTTPError as error:
                self.seen.append(type(error).__name__)

    async def later(self) -> None:
        await self.answered.wait()
        self.ask()

    def leave(self, work: Awaitable[Any]) -> Response:
        self.tasks.append(asyncio.ensure_future(work))
        return Response()

    def leave_once(self, work: Callable[[], Awaitable[Any]]) -> Response:
        """Have the first request start what works for all."""
        first, self.running = not self.running, True
        return self.leave(work()) if first else Response()

    def in_thread(self, work: Callable[[], None]) -> Awaitable[None]:
        """Run it in a thread with the context of here, as instrumentation of threads has it."""
        carried = contextvars.copy_context()

        def run() -> None:
            assert self.over.wait(WAIT), "nobody was answered"
            carried.run(work)

        return asyncio.get_running_loop().run_in_executor(self.pool, run)

    async def within(self) -> Response:
        self.ask()
        return Response()

    async def by_a_task(self) -> Response:
        return self.leave(self.later())

    async def by_a_timer(self) -> Response:
        done = asyncio.get_running_loop().create_future()

        def fire() -> None:
            if not self.answered.is_set():
                asyncio.get_running_loop().call_later(0.01, fire)
            elif not done.done():
                self.ask()
                done.set_result(None)

        asyncio.get_running_loop().call_later(0.01, fire)
        return self.leave(done)

    async def after_the_answer(self) -> Response:
        return Response(background=BackgroundTask(self.ask))

    async def by_a_thread(self) -> Response:
        return self.leave(self.in_thread(self.ask))

    async def by_a_worker(self) -> Response:
        async def work() -> None:
            for _ in range(REQUESTS):
                await self.orders.get()
                await self.later()

        self.orders.put_nowait(1)
        return self.leave_once(work)

    async def by_a_ticker(self) -> Response:
        async def tick() -> None:
            for _ in range(REQUESTS):
                await self.later()
                await asyncio.sleep(0)

        return self.leave_once(tick)

    async def by_mail(self) -> Response:
        def post() -> None:
            for _ in range(REQUESTS):
                self.mails.get(timeout=WAIT)
                self.ask()

        self.mails.put(1)
        return self.leave_once(lambda: self.in_thread(post))

    async def by_a_cache(self) -> Response:
        """Answer what is there, and have it fetched anew."""
        return self.leave_once(self.later)

    async def by_warm_connections(self) -> Response:
        def warm_up() -> None:
            for _ in range(REQUESTS):
                self.ask()

        return self.leave_once(lambda: self.in_thread(warm_up))

    async def by_a_batch(self) -> Response:
        async def collect() -> None:
            for _ in range(REQUESTS):
                await self.orders.get()
            self.ask()

        self.orders.put_nowait(1)
        return self.leave_once(collect)

    async def shared(self) -> Response:
        """Have the first request ask for all who wait, while it waits itself: a single flight, or a
        batch that is sent when it is full."""

        async def ask_once() -> None:
            await self.answered.wait()
            self.ask()

        self.flight = self.flight or asyncio.ensure_future(ask_once())
        self.orders.put_nowait(1)
        if self.orders.qsize() == WAITING:
            self.answered.set()
        await asyncio.wait_for(asyncio.shield(self.flight), WAIT)
        return Response(status_code=502 if self.seen != [200] else 200)


LEFT_BEHIND: dict[str, Callable[[Shop], Awaitable[Response]]] = {
    "a worker": Shop.by_a_worker,
    "a ticker": Shop.by_a_ticker,
    "mail": Shop.by_mail,
    "a cache": Shop.by_a_cache,
    "connections": Shop.by_warm_connections,
    "a batch that others fill": Shop.by_a_batch,
    "a task": Shop.by_a_task,
    "a timer": Shop.by_a_timer,
    "background tasks": Shop.after_the_answer,
    "a thread": Shop.by_a_thread,
}


@pytest.fixture
def recorded(installed: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorded]:
    kept = recording(fit.Sampler(ParentBased(ALWAYS_OFF)))
    HTTPXClientInstrumentor().instrument(tracer_provider=kept.provider)
    yield kept
    HTTPXClientInstrumentor().uninstrument()


def scope(carried: str) -> dict[str, Any]:
    """A request that carries this baggage, as a server hands it on."""
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/",
        "query_string": b"",
        "headers": [(b"host", b"api"), (b"baggage", carried.encode())],
    }


async def nothing_more() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


async def taken(_message: Any) -> None: ...


def traced_page(
    recorded: Recorded, page: Callable[[Request], Awaitable[Response]]
) -> OpenTelemetryMiddleware:
    return OpenTelemetryMiddleware(
        Starlette(routes=[Route("/", page)]),
        tracer_provider=recorded.provider,
        exclude_spans=["receive", "send"],
    )


def carried(arm: Arm) -> str:
    """The baggage of a request of this arm."""
    fault = Fault.parse(f"error@{POINT}")
    return f"fit={encode(KEYS, 'e1', arm, int(time.time()) + 60, [fault])}"


def serve(recorded: Recorded, handle: Callable[[Shop], Awaitable[Response]], arm: Arm) -> Shop:
    """Have one treated request answered and then others, and wait for what they leave behind."""

    async def run() -> Shop:
        shop = Shop()

        async def page(_request: Request) -> Response:
            return await handle(shop)

        app = traced_page(recorded, page)
        await app(scope(carried(arm)), nothing_more, taken)
        shop.answered.set()
        shop.over.set()
        for _ in range(REQUESTS - 1):
            await app(scope("a=b"), nothing_more, taken)
        await asyncio.wait_for(asyncio.gather(*shop.tasks), WAIT)
        return shop

    return asyncio.run(run())


def marks(recorded: Recorded) -> list[set[str]]:
    """The marks of each call of stock."""
    calls = [each for each in recorded.attributes("CLIENT") if "stock" in str(each)]
    return [
        {name for name in each if name.startswith("fit.") and name != "fit.point"} for each in calls
    ]


@pytest.mark.parametrize("left", LEFT_BEHIND)
@pytest.mark.parametrize("arm", ["treatment", "control"])
def test_what_a_request_leaves_behind_is_let_through(
    left: str, arm: Arm, recorded: Recorded
) -> None:
    shop = serve(recorded, LEFT_BEHIND[left], arm)

    assert set(shop.seen) == {200}
    assert {*map(frozenset, marks(recorded))} == {frozenset({"fit.outlived"})}
    assert b"fit=" not in b"".join(shop.sent), "another service would obey it"


@pytest.mark.parametrize(
    ("arm", "seen", "mark"),
    [("treatment", 503, "fit.fired"), ("control", 200, "fit.would_fire")],
)
def test_within_the_request_it_is_as_ever(
    arm: Arm, seen: object, mark: str, recorded: Recorded
) -> None:
    shop = serve(recorded, Shop.within, arm)

    assert shop.seen == [seen, *[200] * (REQUESTS - 1)]
    assert marks(recorded) == [{mark}]
    assert b"".join(shop.sent).count(b"fit=") == (arm == "control")


def test_who_waits_for_a_call_of_a_treated_request_is_told_as_a_bystander(
    recorded: Recorded,
) -> None:
    """Nobody can tell whose such a call is: it is the treated request's, and goes on in it."""

    answers: list[int] = []

    async def run() -> None:
        shop = Shop()

        async def page(_request: Request) -> Response:
            return await shop.shared()

        async def answered(message: Any) -> None:
            if message["type"] == "http.response.start":
                answers.append(message["status"])

        app = traced_page(recorded, page)
        sent = [carried("treatment"), *["a=b"] * (WAITING - 1)]
        await asyncio.gather(*(app(scope(each), nothing_more, answered) for each in sent))

    asyncio.run(run())
    assert answers == [502] * WAITING
    assert marks(recorded) == [{"fit.fired"}]
    assert [each["fit.experiment"] for each in recorded.attributes("SERVER")] == ["e1"]
    bystanders = Bystanders(frozenset({"stock"}))
    bystanders.note("GET /", Spell(0, 200))
    for number in range(WAITING - 1):
        bystanders.add("GET /", f"device {number}", success=False, reached=False)
    assert bystanders.hurt is not None
