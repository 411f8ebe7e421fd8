from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest
from opentelemetry.instrumentation.grpc import GrpcInstrumentorClient

from ldfi.fit import patching
from ldfi.fit.clients import grpc as ours
from tests.fit.clients.contract import Requests, holds, seen, unharmed

POINT = "api>rpc:Get:/shop.Prices"
TIMEOUT = 1.0


def serve() -> tuple[grpc.Server, int]:
    """A server of all four kinds of call: it sends back what it is sent."""
    handlers = {
        "Get": grpc.unary_unary_rpc_method_handler(lambda request, _: request),
        "List": grpc.unary_stream_rpc_method_handler(lambda request, _: iter([request] * 3)),
        "Put": grpc.stream_unary_rpc_method_handler(lambda given, _: b"".join(given)),
        "Chat": grpc.stream_stream_rpc_method_handler(lambda given, _: iter(list(given))),
    }
    server = grpc.server(futures.ThreadPoolExecutor(4))
    service = grpc.method_handlers_generic_handler("shop.Prices", handlers)
    server.add_generic_rpc_handlers((service,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    server, port = serve()
    yield f"127.0.0.1:{port}"
    server.stop(None).wait(5)


@pytest.fixture
def channel(requests_made: Requests, target: str) -> Iterator[grpc.Channel]:
    instrumentor = GrpcInstrumentorClient()  # type: ignore[no-untyped-call]
    instrumentor.instrument()
    with grpc.insecure_channel(target) as channel:
        yield channel
    instrumentor.uninstrument()


@pytest.fixture(autouse=True)
def spans_go_to(requests_made: Requests, monkeypatch: pytest.MonkeyPatch) -> None:
    """The instrumentation of channels takes its tracer from the global provider."""
    monkeypatch.setattr(
        "opentelemetry.trace.get_tracer",
        lambda name, *_, **__: requests_made.provider.get_tracer(name),
    )


def failed_with(code: grpc.StatusCode) -> Callable[[Any], bool]:
    return lambda answer: isinstance(answer, grpc.RpcError) and answer.code() is code


UNAVAILABLE = failed_with(grpc.StatusCode.UNAVAILABLE)
LATE = failed_with(grpc.StatusCode.DEADLINE_EXCEEDED)


def calls(channel: grpc.Channel) -> dict[str, tuple[str, Callable[[], Any]]]:
    get = channel.unary_unary("/shop.Prices/Get")
    stream = channel.unary_stream("/shop.Prices/List")
    put = channel.stream_unary("/shop.Prices/Put")
    chat = channel.stream_stream("/shop.Prices/Chat")
    return {
        "call": ("Get", lambda: get(b"x", timeout=TIMEOUT)),
        "with_call": ("Get", lambda: get.with_call(b"x", timeout=TIMEOUT)),
        "future": ("Get", lambda: get.future(b"x", timeout=TIMEOUT).result()),
        "stream": ("List", lambda: list(stream(b"x", timeout=TIMEOUT))),
        "put": ("Put", lambda: put(iter([b"x", b"y"]), timeout=TIMEOUT)),
        "put future": ("Put", lambda: put.future(iter([b"x"]), timeout=TIMEOUT).result()),
        "chat": ("Chat", lambda: list(chat(iter([b"x", b"y"]), timeout=TIMEOUT))),
    }


@pytest.mark.parametrize("kind", ["call", "with_call", "future", "stream", "put", "put future"])
def test_one_name_at_both_ends(requests_made: Requests, channel: grpc.Channel, kind: str) -> None:
    method, call = calls(channel)[kind]
    holds(requests_made, f"api>rpc:{method}:/shop.Prices", seen(call), UNAVAILABLE, LATE)


def test_streams_both_ways(requests_made: Requests, channel: grpc.Channel) -> None:
    """OpenTelemetry ends such a span when the call returns, and never hears how it ended."""
    _, call = calls(channel)["chat"]
    point = "api>rpc:Chat:/shop.Prices"
    with requests_made.request():
        assert call() == [b"x", b"y"]
    assert requests_made.lineage().called == {point}
    with requests_made.request(f"error@{point}"):
        assert UNAVAILABLE(seen(call)())
    assert requests_made.lineage().fired == {f"error@{point}"}
    assert requests_made.lineage().failed == {point}


def test_an_injected_failure_is_grpcs_own(requests_made: Requests, channel: grpc.Channel) -> None:
    get = channel.unary_unary("/shop.Prices/Get")
    with requests_made.request(f"error@{POINT}"):
        future = get.future(b"x")
        with pytest.raises(grpc.RpcError) as caught:
            get(b"x")

    assert future.done()
    assert future.code() is grpc.StatusCode.UNAVAILABLE
    assert future.details() == "fault injected"
    assert isinstance(future.exception(), grpc.RpcError)
    heard: list[object] = []
    future.add_done_callback(heard.append)
    assert heard == [future]
    assert isinstance(caught.value, grpc.Call)
    assert caught.value.trailing_metadata() == ()
    assert "fault injected" in str(caught.value)


def test_where_nobody_instrumented_the_client_the_fault_has_a_span_of_its_own(
    requests_made: Requests, target: str
) -> None:
    with grpc.insecure_channel(target) as channel:
        get = channel.unary_unary("/shop.Prices/Get")
        with requests_made.request():
            assert get(b"x") == b"x"
        assert requests_made.calls() == []

        with requests_made.request(f"error@{POINT}"), pytest.raises(grpc.RpcError):
            get(b"x")
        run = requests_made.lineage()
        assert run.called == run.failed == {POINT}
        assert run.fired == {f"error@{POINT}"}

        with requests_made.request(f"delay@{POINT}", delay_ms=80):
            assert get(b"x") == b"x"
        (span,) = requests_made.calls()
        assert span.end_time is not None
        assert span.start_time is not None
        assert span.end_time - span.start_time > 0.08 * 1e9


def test_taken_out_a_call_is_grpcs_own_again(requests_made: Requests, target: str) -> None:
    patching.take_out_all()
    began = time.monotonic()
    with grpc.insecure_channel(target) as channel, requests_made.request(f"error@{POINT}"):
        assert channel.unary_unary("/shop.Prices/Get")(b"x") == b"x"
    assert time.monotonic() - began < 5


def test_the_host_is_unharmed(requests_made: Requests, channel: grpc.Channel) -> None:
    for method, call in calls(channel).values():
        point = f"api>rpc:{method}:/shop.Prices"
        unharmed(requests_made, ours, point, seen(call), UNAVAILABLE)
