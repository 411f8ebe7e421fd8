"""What one request carries never shows in another, whatever else is going on in the process.

Requests are begun, looked into and ended in any order, many at once, each in an asyncio task or a
thread of its own, behind the edge and OpenTelemetry's middleware. Rules come and go meanwhile.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from opentelemetry import context
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware as TracedAsgi
from opentelemetry.instrumentation.wsgi import OpenTelemetryMiddleware as TracedWsgi
from opentelemetry.sdk.trace import TracerProvider

from ldfi import fit
from ldfi.fit import runtime
from ldfi.fit.clock import steady
from ldfi.fit.protocol.rules import Lease
from ldfi.fit.runtime import Runtime, activate
from tests.fit.applications import KEYS
from tests.fit.edges import ANY, Held, a_rule

Seen = tuple[str, str] | None
SECONDS = 10.0


def here() -> Seen:
    """The experiment and arm that code at this place sees."""
    active = runtime.active()
    found = active.context() if active is not None else None
    return (found.experiment, found.arm) if found is not None else None


@dataclass
class Request:
    """A request that is held open inside the application, and does there what it is told."""

    expected: Seen
    orders: queue.Queue[str] = field(default_factory=queue.Queue)
    answers: queue.Queue[list[Seen]] = field(default_factory=queue.Queue)

    def look(self) -> list[Seen]:
        self.orders.put("look")
        return self.answers.get(timeout=SECONDS)

    def end(self) -> None:
        self.orders.put("end")
        assert self.answers.get(timeout=SECONDS) == []


class Process:
    """An event loop in a thread and a pool of threads, as a server has them."""

    def __init__(self) -> None:
        self.poll = Held()
        self.provider = TracerProvider()
        self.requests: dict[str, Request] = {}
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.pool = ThreadPoolExecutor(64)  # more than there are ever requests, twice
        inner_asgi = TracedAsgi(self._asgi, tracer_provider=self.provider)
        inner_wsgi = TracedWsgi(self._wsgi, tracer_provider=self.provider)
        self.asgi: Any = fit.EdgeMiddleware(inner_asgi, self.poll)
        self.wsgi = fit.WSGIEdgeMiddleware(inner_wsgi, self.poll)

    async def _asgi(self, scope: Any, receive: Any, send: Any) -> None:
        request = self.requests[dict(scope["headers"])[b"x-request"].decode()]
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(self.pool, request.orders.get) == "look":
            in_task = await asyncio.create_task(_later())
            in_thread = await asyncio.to_thread(here)
            by_hand = await loop.run_in_executor(self.pool, copy_context().run, here)
            request.answers.put([here(), in_task, in_thread, by_hand])

    def _wsgi(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = self.requests[environ["HTTP_X_REQUEST"]]
        start_response("200 OK", [])
        while request.orders.get() == "look":
            request.answers.put([here()])
        return []

    def begin(self, name: str, device: str, request: Request, *, threaded: bool) -> None:
        self.requests[name] = request
        if threaded:
            environ = {"HTTP_X_DEVICE_ID": device, "HTTP_X_REQUEST": name, "REQUEST_METHOD": "GET"}
            environ |= {"PATH_INFO": "/", "wsgi.url_scheme": "http", "HTTP_HOST": "x"}
            self.pool.submit(self._serve_thread, environ, request)
        else:
            headers = [(b"x-device-id", device.encode()), (b"x-request", name.encode())]
            scope: dict[str, Any] = {
                "type": "http",
                "method": "GET",
                "path": "/",
                "headers": headers,
            }
            scope |= {"query_string": b"", "scheme": "http", "server": ("x", 80), "client": None}
            asyncio.run_coroutine_threadsafe(self._serve_task(scope, request), self.loop)

    def _serve_thread(self, environ: dict[str, Any], request: Request) -> None:
        list(self.wsgi(environ, lambda *_: None))
        request.answers.put([] if here() is None else [here()])

    async def _serve_task(self, scope: dict[str, Any], request: Request) -> None:
        await self.asgi(scope, None, None)
        request.answers.put([] if here() is None else [here()])

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(SECONDS)
        self.loop.close()
        self.pool.shutdown()


async def _later() -> Seen:
    await asyncio.sleep(0)
    return here()


class Requests(RuleBasedStateMachine):
    """Any interleaving of requests of ten devices under two experiments."""

    open_requests = Bundle("open_requests")

    def __init__(self) -> None:
        super().__init__()
        self.token = context.attach(context.Context())
        activate(Runtime("edge", KEYS))
        self.process = Process()
        self.count = 0
        first = a_rule("e1", 0.3, 0.3, predicate=ANY)
        self.known = (first, a_rule("e2", 0.5, 0.5, predicate=ANY, yields_to=(first.claim,)))
        self.lease = Lease()
        self.running: list[Request] = []

    @rule(armed=st.sets(st.sampled_from([0, 1])))
    def rules_come_and_go(self, armed: set[int]) -> None:
        self.lease = Lease(tuple(self.known[each] for each in sorted(armed)), steady() + 60)
        self.process.poll.hold(self.lease)

    @rule(target=open_requests, device=st.integers(0, 9), threaded=st.booleans())
    def begin(self, device: int, threaded: bool) -> Request:
        allocated = self.lease.allocate({}, f"d{device}")
        expected = (allocated[0].experiment, allocated[1]) if allocated else None
        request = Request(expected)
        self.count += 1
        self.process.begin(f"r{self.count}", f"d{device}", request, threaded=threaded)
        self.running.append(request)
        assert set(request.look()) == {expected}
        return request

    @rule(request=open_requests)
    def look(self, request: Request) -> None:
        assert set(request.look()) == {request.expected}

    @rule(request=consumes(open_requests))
    def end(self, request: Request) -> None:
        self.running.remove(request)
        request.end()

    @invariant()
    def nothing_shows_outside(self) -> None:
        assert here() is None

    def teardown(self) -> None:
        try:
            for request in self.running:
                assert set(request.look()) == {request.expected}
        finally:
            for request in self.running:
                request.end()
            self.process.close()
            activate(None)
            context.detach(self.token)


TestRequests = Requests.TestCase
TestRequests.settings = settings(stateful_step_count=20)
