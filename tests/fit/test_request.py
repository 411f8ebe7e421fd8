"""A context belongs to its request: whatever a treated request starts and leaves behind is let
through once it has been answered, and nobody else is hurt by it."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

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
from ldfi.fit.context import Arm, encode
from ldfi.fit.faults import Fault
from tests.fit.applications import KEYS, Answering, Recorded, recording

POINT = "api>http:GET:stock/left"
WAIT = 20.0


class Shop:
    """Needs stock, in the request or in what it leaves behind; ``seen`` is what that came to."""

    def __init__(self) -> None:
        self.seen: list[object] = []
        self.answered = asyncio.Event()
        self.pool = ThreadPoolExecutor(1)
        self.tasks: list[asyncio.Future[Any]] = []

    def ask(self) -> None:
        """Ask beneath which a fault would be."""
        with httpx.Client(transport=Answering(httpx.Response(200))) as client:
            try:
                self.seen.append(client.get("http://stock/left").status_code)
            except httpx.HTTPError as error:
                self.seen.append(type(error).__name__)

    async def later(self) -> None:
        await self.answered.wait()
        self.ask()

    async def within(self) -> Response:
        self.ask()
        return Response()

    async def by_a_task(self) -> Response:
        self.tasks.append(asyncio.ensure_future(self.later()))
        return Response()

    async def by_a_timer(self) -> Response:
        done = asyncio.get_running_loop().create_future()
        self.tasks.append(done)

        def fire() -> None:
            if not self.answered.is_set():
                asyncio.get_running_loop().call_later(0.01, fire)
            elif not done.done():
                self.ask()
                done.set_result(None)

        asyncio.get_running_loop().call_later(0.01, fire)
        return Response()

    async def after_the_answer(self) -> Response:
        return Response(background=BackgroundTask(self.ask))

    async def by_a_thread(self) -> Response:
        """As instrumentation of threads has it, and ``asyncio.to_thread``."""
        carried = contextvars.copy_context()
        loop, release = asyncio.get_running_loop(), threading.Event()

        def work() -> None:
            assert release.wait(WAIT), "nobody was answered"
            carried.run(self.ask)

        self.tasks.append(loop.run_in_executor(self.pool, work))
        self.tasks.append(asyncio.ensure_future(self._let_go(release)))
        return Response()

    async def _let_go(self, release: threading.Event) -> None:
        await self.answered.wait()
        release.set()


LEFT_BEHIND: dict[str, Callable[[Shop], Awaitable[Response]]] = {
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


def serve(recorded: Recorded, handle: Callable[[Shop], Awaitable[Response]], arm: Arm) -> Shop:
    """Have one treated request answered, and then wait for what it has left behind."""

    async def run() -> Shop:
        shop = Shop()

        async def page(_request: Request) -> Response:
            return await handle(shop)

        app = OpenTelemetryMiddleware(
            Starlette(routes=[Route("/", page)]),
            tracer_provider=recorded.provider,
            exclude_spans=["receive", "send"],
        )
        value = encode(KEYS, "e1", arm, int(time.time()) + 60, [Fault.parse(f"error@{POINT}")])
        await app(scope(f"fit={value}"), nothing_more, taken)
        shop.answered.set()
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

    assert shop.seen == [200]
    assert marks(recorded) == [{"fit.outlived"}]


@pytest.mark.parametrize(
    ("arm", "seen", "mark"),
    [("treatment", 503, "fit.fired"), ("control", 200, "fit.would_fire")],
)
def test_within_the_request_it_is_as_ever(
    arm: Arm, seen: object, mark: str, recorded: Recorded
) -> None:
    shop = serve(recorded, Shop.within, arm)

    assert shop.seen == [seen]
    assert marks(recorded) == [{mark}]
