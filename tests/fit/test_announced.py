"""What fit tells of a trace beforehand: where it begins, and how many calls are in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from opentelemetry import baggage, trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.instrumentation.wsgi import OpenTelemetryMiddleware
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased
from opentelemetry.trace import SpanKind

from ldfi import fit
from ldfi.fit.protocol.context import encode
from ldfi.fit.runtime import activate
from ldfi.testing.live_service import served
from tests.fit.applications import KEYS, Recorded, echo_app, recording, traced
from tests.fit.edges import Held, a_rule, wsgi_served

pytestmark = pytest.mark.usefixtures("installed")

DEVICE = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}


@pytest.fixture
def everything() -> Recorded:
    return recording(fit.Sampler(ParentBased(ALWAYS_ON)))


@pytest.fixture
def under_experiment(installed: None) -> Iterator[None]:
    value = encode(KEYS, "e1", "treatment", int(time.time()) + 30, [])
    token = attach(baggage.set_baggage("fit", value, Context()))
    yield
    detach(token)


def marks(recorded: Recorded) -> list[object]:
    return [each.get("fit.edge") for each in recorded.attributes("SERVER")]


def get(url: str, **headers: str) -> None:
    httpx.get(f"{url}/boot", headers={"x-device-id": "d1", **headers}, trust_env=False)


@pytest.mark.parametrize("rules", [(), (a_rule(),)], ids=["no experiment", "experiment"])
@pytest.mark.parametrize("headers", [{}, DEVICE], ids=["no parent", "device"])
def test_the_edge_marks_a_request_as_its_own(
    everything: Recorded, headers: dict[str, str], rules: Any
) -> None:
    app = fit.EdgeMiddleware(traced(echo_app(), everything), Held(*rules))
    with served(app) as url:
        get(url, **headers)
        get(url, **headers)
    assert marks(everything) == [True, True]


def test_the_edge_says_whose_requests_are_not_the_first(everything: Recorded) -> None:
    app = fit.EdgeMiddleware(traced(echo_app(), everything), Held(a_rule(treatment=1.0)))
    with served(app) as url:
        for device in ("d1", "d2", "d1", "d2", "d1"):
            get(url, **{"x-device-id": device})
    again = [each.get("fit.again") for each in everything.attributes("SERVER")]
    assert again == [None, None, True, True, True]


def test_it_says_so_of_no_request_that_is_in_no_experiment(everything: Recorded) -> None:
    with served(fit.EdgeMiddleware(traced(echo_app(), everything), Held())) as url:
        get(url)
        get(url)
    assert [each.get("fit.again") for each in everything.attributes("SERVER")] == [None, None]


def test_so_does_the_edge_of_wsgi(everything: Recorded) -> None:
    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return [b""]

    inner = OpenTelemetryMiddleware(app, tracer_provider=everything.provider)
    with wsgi_served(fit.WSGIEdgeMiddleware(inner, Held())) as url:
        get(url, **DEVICE)
    assert marks(everything) == [True]


def test_a_service_behind_the_edge_marks_nothing(everything: Recorded) -> None:
    with served(traced(echo_app(), everything)) as url:
        get(url, **DEVICE)
    assert marks(everything) == [None]


def test_what_a_request_calls_in_the_same_process_is_no_arrival(everything: Recorded) -> None:
    inner = traced(echo_app(), everything)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        token = attach(Context())  # or the inner one is no SERVER span
        async with httpx.AsyncClient(transport=httpx.ASGITransport(inner)) as client:
            await client.get("http://inner/", headers=DEVICE)
        detach(token)
        await echo_app()(scope, receive, send)

    with served(fit.EdgeMiddleware(traced(app, everything), Held())) as url:
        get(url)
    assert sorted(map(str, marks(everything))) == ["None", "True"]


def test_without_a_key_the_edge_marks_nothing(everything: Recorded) -> None:
    activate(None)
    with served(fit.EdgeMiddleware(traced(echo_app(), everything), Held())) as url:
        get(url, **DEVICE)
    assert marks(everything) == [None]


@pytest.mark.usefixtures("under_experiment")
def test_a_span_says_how_many_calls_were_begun_inside_it(everything: Recorded) -> None:
    # Given calls, a decorated function, and what is none of these
    tracer = everything.provider.get_tracer("test")
    with tracer.start_as_current_span("served", kind=SpanKind.SERVER):
        for kind in (SpanKind.CLIENT, SpanKind.PRODUCER, SpanKind.INTERNAL):
            with tracer.start_as_current_span("inside", kind=kind):
                pass
        point = {"fit.point": "api>function:rank"}
        with (
            tracer.start_as_current_span("function", attributes=point),
            tracer.start_as_current_span("query", kind=SpanKind.CLIENT),
        ):
            pass
    # Then each span tells of those right inside it
    said = {span.name: (span.attributes or {}).get("fit.calls") for span in everything.spans()}
    assert said == {"served": 3, "inside": None, "function": 1, "query": None}


def test_nothing_is_written_on_the_spans_of_other_requests(everything: Recorded) -> None:
    tracer = everything.provider.get_tracer("test")
    with (
        tracer.start_as_current_span("served", kind=SpanKind.SERVER),
        tracer.start_as_current_span("call", kind=SpanKind.CLIENT),
    ):
        pass
    assert not any("fit.calls" in (span.attributes or {}) for span in everything.spans())


@pytest.mark.usefixtures("under_experiment")
def test_a_call_that_begins_when_the_span_around_it_has_ended_is_not_announced(
    everything: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    tracer = everything.provider.get_tracer("test")
    around = tracer.start_span("served", kind=SpanKind.SERVER)
    around.end()
    within = trace.set_span_in_context(around)
    tracer.start_span("detached", within, kind=SpanKind.CLIENT).end()
    assert not any("fit.calls" in (span.attributes or {}) for span in everything.spans())
    assert not caplog.records


@pytest.mark.usefixtures("under_experiment")
def test_calls_from_many_threads_are_all_counted(everything: Recorded) -> None:
    tracer = everything.provider.get_tracer("test")
    with tracer.start_as_current_span("served", kind=SpanKind.SERVER) as around:
        within = trace.set_span_in_context(
            around, baggage.set_baggage("fit", str(baggage.get_baggage("fit")))
        )

        def calls() -> None:
            for _ in range(100):
                tracer.start_span("call", within, kind=SpanKind.CLIENT).end()

        threads = [threading.Thread(target=calls) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    (root,) = (span for span in everything.spans() if span.name == "served")
    assert (root.attributes or {})["fit.calls"] == 800
