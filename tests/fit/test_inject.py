"""The one path through every injection point, and that it never harms its host."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import baggage, context, trace
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor

from ldfi import fit
from ldfi.fit import answers, delay, effect, inject, request, runtime
from ldfi.fit import error as fault_error
from ldfi.fit.clients import aiohttp as aiohttp_client
from ldfi.fit.clients import http as http_client
from ldfi.fit.clients import httpx as httpx_client
from ldfi.fit.clients import httpx_failures
from ldfi.fit.clients import redis as redis_client
from ldfi.fit.clients import requests_urllib3 as urllib3_client
from ldfi.fit.protocol import context as failure_context
from ldfi.fit.protocol import faults, keys, native_kinds, notation, points
from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.errors import InjectedFault
from tests.fit.applications import Answering
from tests.fit.breaking import BrokenInsideError, breaking, functions
from tests.fit.clients.contract import Requests

POINT = "api>cache:get:home"
INSIDE = (
    *(inject, delay, points, request, runtime, keys, failure_context, faults, effect),
    *(answers, fault_error, native_kinds, notation, httpx_failures),
    *(httpx_client, http_client, urllib3_client, aiohttp_client, redis_client),
)
INTERNALS = [
    pytest.param(owner, name, id=f"{module.__name__}.{getattr(owner, '__name__', '')}.{name}")
    for module in INSIDE
    for owner, name in functions(module)
]


@pytest.fixture
def requests_made(installed: None) -> Iterator[Requests]:
    made = Requests()
    HTTPXClientInstrumentor().instrument(tracer_provider=made.provider)
    yield made
    HTTPXClientInstrumentor().uninstrument()


@pytest.mark.parametrize("kind", ["error", "delay", "error:1", "refused", "status:503"])
@pytest.mark.parametrize(("owner", "name"), INTERNALS)
def test_whatever_breaks_inside_the_hosts_call_goes_through(
    owner: Any, name: str, kind: str, requests_made: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = "api>http:GET:ratings/titles/*"
    answer = httpx.Response(200, text="of the host")

    def send() -> int:
        with httpx.Client(transport=Answering(answer)) as client:
            try:
                return client.get("http://ratings/titles/17", timeout=0.05).status_code
            except httpx.ConnectError:
                return 503 if kind == "refused" else 0

    with requests_made.request(f"{kind}@{point}", delay_ms=20):
        breaking(owner, name, INSIDE, monkeypatch)
        assert send() in {200, 503}  # the fault may have fired, but nothing of ours came out


def test_a_failure_that_cannot_be_built_is_not_claimed(
    requests_made: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> effect.Effect:
        raise BrokenInsideError

    monkeypatch.setattr(httpx_client, "_effect", broken)
    with (
        requests_made.request("error@api>http:GET:ratings/titles/*"),
        httpx.Client(transport=Answering(httpx.Response(200, text="host"))) as client,
    ):
        assert client.get("http://ratings/titles/17").status_code == 200
    assert requests_made.lineage().fired == frozenset()


def test_where_spans_are_not_recorded_nothing_is_injected(installed: None) -> None:
    silent = trace.NonRecordingSpan(trace.SpanContext(1, 2, is_remote=False))
    requests_made = Requests()
    with requests_made.request(f"error@{POINT}"):
        around = trace.set_span_in_context(silent)
        token = context.attach(around)
        try:
            assert inject.through(_site(), silent) is None
        finally:
            context.detach(token)


@pytest.mark.parametrize("arm", ["treatment", "control"])
@pytest.mark.parametrize(
    ("seconds", "fault", "marked"),
    [
        (-2, f"error@{POINT}", True),
        (-200, f"error@{POINT}", True),
        (-400, f"error@{POINT}", False),  # nobody's request goes on for so long
        (-2, "error@api>cache:get:other", False),
    ],
)
def test_a_call_that_its_context_did_not_last_for_is_let_through_and_says_so(
    installed: None, arm: Arm, seconds: int, fault: str, marked: bool
) -> None:
    requests_made = Requests()
    tracer = requests_made.provider.get_tracer("test")
    with (
        requests_made.request(fault, arm=arm, seconds=seconds),
        tracer.start_as_current_span("get", kind=trace.SpanKind.CLIENT),
    ):
        assert not hit(requests_made)
    (call,) = requests_made.calls()
    assert call.attributes == ({"fit.point": POINT, "fit.expired": True} if marked else {})
    assert requests_made.lineage().expired is marked
    assert requests_made.lineage().fired == requests_made.lineage().would_fire == frozenset()


def _site() -> inject.Site:
    return inject.Site(
        lambda service: f"{service}>cache:get:home",
        lambda injection: effect.Effect(failure=InjectedFault("fault injected")),
    )


def hit(requests_made: Requests) -> bool:
    """Pass the point as a library that nobody instrumented would; whether the fault fired."""
    if not inject.armed():
        return False
    try:
        inject.through(_site(), None)
    except InjectedFault:
        return True
    return False


@given(
    st.lists(st.sampled_from(["hit", "miss", "none"]), min_size=2, max_size=12),
    st.integers(1, 4),
    st.data(),
)
def test_no_request_sees_anothers_context(
    wanted: list[str], calls: int, data: st.DataObject
) -> None:
    """Requests at once, in threads, tasks and executors, in any order of their steps."""
    runtime.activate(runtime.Runtime("api", _keys()))
    kinds = data.draw(
        st.lists(
            st.sampled_from(["thread", "task", "executor"]),
            min_size=len(wanted),
            max_size=len(wanted),
        )
    )
    try:
        for want, seen in asyncio.run(_all_at_once(wanted, kinds, calls)):
            assert seen == [want == "hit"] * calls
        assert not inject.armed()
    finally:
        runtime.activate(None)


def _keys() -> keys.Keys:
    from tests.fit.applications import KEYS

    return KEYS


def _faults(want: str) -> list[str]:
    return {"hit": [f"error@{POINT}"], "miss": ["error@api>cache:get:other"], "none": []}[want]


async def _all_at_once(
    wanted: list[str], kinds: list[str], calls: int
) -> list[tuple[str, list[bool]]]:
    loop = asyncio.get_running_loop()
    made = Requests()
    monkey = trace.get_tracer
    trace.get_tracer = lambda *_, **__: made.provider.get_tracer("test")
    barrier = threading.Barrier(sum(kind != "task" for kind in kinds) or 1)
    pool = ThreadPoolExecutor(len(wanted))

    def threaded(want: str, within: context.Context | None = None) -> tuple[str, list[bool]]:
        barrier.wait(10)
        token = context.attach(within) if within is not None else None
        try:
            if within is not None:
                return want, [hit(made) for _ in range(calls)]
            with made.request(*_faults(want)):
                return want, [hit(made) for _ in range(calls)]
        finally:
            if token is not None:
                context.detach(token)

    async def task(want: str) -> tuple[str, list[bool]]:
        with made.request(*_faults(want)):
            seen = []
            for _ in range(calls):
                await asyncio.sleep(0)
                seen.append(hit(made))
            return want, seen

    async def executor(want: str) -> tuple[str, list[bool]]:
        """Work handed to a pool's thread with the request's context, as frameworks do."""
        with made.request(*_faults(want)):
            carried = context.get_current()
            return await loop.run_in_executor(pool, threaded, want, carried)

    async def start(want: str, kind: str) -> tuple[str, list[bool]]:
        if kind == "task":
            return await task(want)
        if kind == "executor":
            return await executor(want)
        return await loop.run_in_executor(pool, threaded, want)

    try:
        return list(await asyncio.gather(*map(start, wanted, kinds)))
    finally:
        trace.get_tracer = monkey
        pool.shutdown()


def test_a_decorated_function_too_goes_through_whatever_breaks(
    requests_made: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    @fit.point("cache", "get", peer="home")
    def cached() -> str:
        return "hit"

    for name in ("_start", "_name"):
        with monkeypatch.context() as patched, requests_made.request(f"error@{POINT}"):
            patched.setattr("ldfi.fit.functions._SITE", inject.Site(_raising, _raising))
            if name == "_name":
                patched.setattr("ldfi.fit.functions._name", _raising)
            assert cached() == "hit"


def _raising(*_: object) -> Any:
    raise BrokenInsideError


def test_a_callers_baggage_alone_arms_nothing() -> None:
    token = context.attach(baggage.set_baggage("user", "u1"))
    try:
        assert not inject.armed()
    finally:
        context.detach(token)
