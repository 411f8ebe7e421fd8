"""A fault as the caller of a real client over a real socket sees it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from opentelemetry import baggage, context, trace

from ldfi import fit
from ldfi.fit.context import Arm, encode
from ldfi.fit.errors import InjectedFault
from ldfi.fit.faults import Fault
from ldfi.kinds import FaultKind
from ldfi.testing.serving import served
from tests.fit.applications import KEYS, Recorded, echo_app


@pytest.fixture
def callee() -> Iterator[str]:
    with served(echo_app()) as url:
        yield url


@contextmanager
def armed(
    point: str, kind: FaultKind, arm: Arm = "treatment", delay_ms: int = 100
) -> Iterator[str]:
    """A request that carries a failure context."""
    value = encode(KEYS, "e1", arm, int(time.time()) + 60, [Fault(point, kind)], delay_ms=delay_ms)
    token = context.attach(baggage.set_baggage("fit", value))
    yield value
    context.detach(token)


def point_of(url: str) -> str:
    return f"api>http:GET:{url.removeprefix('http://')}/titles/*"


def test_without_a_context_the_call_goes_through(client: httpx.Client, callee: str) -> None:
    assert client.get(f"{callee}/titles/17").status_code == 200


def test_an_error_answers_503_and_the_span_proves_it(
    client: httpx.Client, callee: str, recorded: Recorded
) -> None:
    with armed(point_of(callee), "error"):
        response = client.get(f"{callee}/titles/17")

    assert (response.status_code, response.text) == (503, "fault injected")
    (attributes,) = recorded.attributes("CLIENT")
    assert attributes["fit.point"] == point_of(callee)
    assert attributes["fit.fired"] == "error"
    (span,) = recorded.spans()
    assert [event.name for event in span.events] == ["fit.fault"]
    assert span.status.status_code is trace.StatusCode.ERROR


def test_a_delay_past_the_callers_timeout_raises_that_timeout(
    client: httpx.Client, callee: str, recorded: Recorded
) -> None:
    started = time.monotonic()
    with armed(point_of(callee), "delay", delay_ms=5000), pytest.raises(httpx.ReadTimeout):
        client.get(f"{callee}/titles/17")

    assert 0.25 < time.monotonic() - started < 2
    (attributes,) = recorded.attributes("CLIENT")
    assert attributes["fit.fired"] == "delay"


def test_a_delay_that_is_outlasted_lets_the_call_through(client: httpx.Client, callee: str) -> None:
    started = time.monotonic()
    with armed(point_of(callee), "delay", delay_ms=100):
        response = client.get(f"{callee}/titles/17", timeout=None)

    assert response.status_code == 200
    assert time.monotonic() - started > 0.1


def test_another_point_is_not_touched(client: httpx.Client, callee: str) -> None:
    with armed(point_of(callee), "error"):
        assert client.get(f"{callee}/elsewhere").status_code == 200
        assert client.post(f"{callee}/titles/17").status_code == 200


def test_the_control_arm_only_records(
    client: httpx.Client, callee: str, recorded: Recorded
) -> None:
    with armed(point_of(callee), "error", arm="control"):
        assert client.get(f"{callee}/titles/17").status_code == 200

    (attributes,) = recorded.attributes("CLIENT")
    assert attributes["fit.would_fire"] == "error"
    assert "fit.fired" not in attributes


@pytest.mark.parametrize("spoil", ["forged", "expired", "foreign"])
def test_a_context_that_does_not_verify_injects_nothing(
    spoil: str, client: httpx.Client, callee: str
) -> None:
    fault = [Fault(point_of(callee), "error")]
    value = {
        "forged": encode(KEYS, "e1", "treatment", int(time.time()) + 60, fault)[:-1] + "!",
        "expired": encode(KEYS, "e1", "treatment", int(time.time()) - 1, fault),
        "foreign": "hello",
    }[spoil]
    token = context.attach(baggage.set_baggage("fit", value))
    try:
        assert client.get(f"{callee}/titles/17").status_code == 200
    finally:
        context.detach(token)


def test_the_async_client_is_an_injection_point_too(
    client: httpx.Client, callee: str, recorded: Recorded
) -> None:
    async def call() -> int:
        async with httpx.AsyncClient(trust_env=False) as http:
            return (await http.get(f"{callee}/titles/17")).status_code

    with armed(point_of(callee), "error"):
        assert asyncio.run(call()) == 503


def test_a_failure_inside_fit_lets_the_call_through(
    client: httpx.Client, callee: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise RuntimeError("broken")

    monkeypatch.setattr("ldfi.fit.clients.httpx.http_point", broken)
    with armed(point_of(callee), "error"):
        assert client.get(f"{callee}/titles/17").status_code == 200


@fit.point("cache", "get", peer="home")
def cached() -> str:
    return "hit"


@fit.point("cache", "get", peer="home")
async def cached_async() -> str:
    return "hit"


def test_a_decorated_function_fails_and_its_span_says_so(
    installed: None, tracer: trace.Tracer, recorded: Recorded
) -> None:
    with armed("api>cache:get:home", "error"):
        with pytest.raises(InjectedFault):
            cached()
        with pytest.raises(InjectedFault):
            asyncio.run(cached_async())

    spans = recorded.spans()
    assert [dict(s.attributes or {})["fit.fired"] for s in spans] == ["error", "error"]
    assert all(s.status.status_code is trace.StatusCode.ERROR for s in spans)


def test_a_decorated_function_works_without_a_context(
    installed: None, tracer: trace.Tracer
) -> None:
    assert cached() == "hit"
    assert asyncio.run(cached_async()) == "hit"


def test_a_delayed_function_can_be_cancelled(
    installed: None, tracer: trace.Tracer, recorded: Recorded
) -> None:
    async def impatient() -> None:
        async with asyncio.timeout(0.05):
            await cached_async()

    started = time.monotonic()
    with armed("api>cache:get:home", "delay", delay_ms=5000), pytest.raises(TimeoutError):
        asyncio.run(impatient())

    assert time.monotonic() - started < 2
    (span,) = recorded.spans()
    assert span.status.status_code is trace.StatusCode.ERROR


def test_without_a_key_nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FIT_KEYS", raising=False)
    assert fit.install("api") is False
    monkeypatch.setenv("FIT_KEYS", "broken")
    assert fit.install("api") is False
