"""What requests are known by, where spans say little of them; and what is no request."""

from __future__ import annotations

from typing import Any

import pytest

from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.readers.formats import read_json, read_message
from ldfi.lineage.span import Trace
from tests.lineage.formats import WRITERS, Made

GET = {"http.request.method": "GET"}


def run(*spans: Made, form: str = "otlp-json") -> Lineage:
    read = read_message if form == "otlp-protobuf" else read_json
    learned = learn(Trace.of(spans[0].trace, read(WRITERS[form](spans)).spans))
    assert learned is not None
    return learned


@pytest.mark.parametrize(
    ("name", "said", "features"),
    [
        ("GET", {**GET, "http.route": "/orders"}, {"path": "/orders"}),
        ("GET /x", {**GET, "http.route": "/orders"}, {"path": "/orders"}),
        ("GET", {**GET, "http.route": "orders/"}, {"path": "/orders/"}),
        ("GET", {**GET, "http.route": "/users/{id}"}, {"path": "/users/*", "route": "/users/*"}),
        (
            "GET",
            {**GET, "http.route": "/users/:name/x"},
            {"path": "/users/*/x", "route": "/users/*/x"},
        ),
        ("GET /api/carts", GET, {"path": "/api/carts"}),
        ("GET /owners/8/pets", {}, {"path": "/owners/*/pets"}),
        ("GET", {**GET, "url.path": "/"}, {"path": "/"}),
        ("GET", GET, {"path": "/"}),
        (
            "GET /x",
            {**GET, "url.path": "/users/7", "http.route": "/users/{id}"},
            {"path": "/users/*"},
        ),
    ],
)
def test_a_request_is_known_by_the_route_where_it_says_no_path(
    name: str, said: dict[str, Any], features: dict[str, str]
) -> None:
    learned = run(Made(1, 0, "edge", "server", name, attributes=said))
    assert learned.features == {"method": "GET", **features}


def test_what_says_no_path_and_no_method_is_an_operation() -> None:
    assert run(Made(1, 0, "edge", "server", "render page")).features == {"operation": "render page"}


EXPORTS = [
    {"http.request.method": "POST", "url.full": "http://collector:4318/v1/traces"},
    {"http.request.method": "POST", "url.full": "http://collector:4318/v1/metrics"},
    {"http.request.method": "POST", "url.full": "http://zipkin:9411/api/v2/spans"},
    {"http.method": "POST", "http.url": "http://jaeger:14268/api/traces?format=jaeger.thrift"},
    {"http.request.method": "POST", "url.full": "http://agent:8126/v0.4/traces"},
    {"http.request.method": "POST", "url.full": "http://apm:8200/intake/v2/events"},
    {
        "rpc.system": "grpc",
        "rpc.service": "opentelemetry.proto.collector.trace.v1.TraceService",
        "rpc.method": "Export",
    },
    {
        "rpc.system.name": "grpc",
        "rpc.method": "opentelemetry.proto.collector.logs.v1.LogsService/Export",
    },
    {
        "rpc.system": "grpc",
        "rpc.service": "jaeger.api_v2.CollectorService",
        "rpc.method": "PostSpans",
    },
]


@pytest.mark.parametrize("said", EXPORTS)
def test_exporting_is_no_request_and_no_call(said: dict[str, Any]) -> None:
    # As a trace of its own, on either side
    for kind in ("client", "server"):
        assert run(Made(1, 0, "web", kind, "POST", attributes=said)).is_report
    # And within a request, answered or not
    inside = run(
        Made(1, 0, "web", "server", "GET /page"),
        Made(2, 1, "web", "client", "export", attributes=said),
        Made(3, 2, "collector", "server", "receive", attributes=said),
    )
    assert (inside.called, inside.is_report) == (frozenset(), False)


@pytest.mark.parametrize("path", ["/v1/traces", "/api/traces", "/v1/tracesx", "/api/v2/spans/7"])
def test_reading_traces_is_a_request(path: str) -> None:
    method = "GET" if path in {"/v1/traces", "/api/traces"} else "POST"
    said = {"http.request.method": method, "url.path": path}
    assert not run(Made(1, 0, "store", "server", method, attributes=said)).is_report


@pytest.mark.parametrize("form", WRITERS)
def test_times_that_are_not_known_are_so_in_each_format(form: str) -> None:
    learned = run(
        Made(1, 0, "web", "server", "GET /page", None, GET),
        Made(2, 1, "web", "client", "pay", None),
        Made(3, 1, "web", "client", "mail", (0, 4)),
        form=form,
    )
    known = {
        span.operation.name: (span.start > 0, span.end - span.start) for span in learned.trace.spans
    }
    assert known == {"GET /page": (False, 0), "pay": (False, 0), "mail": (True, 4_000_000)}
    assert len(learned.support) == 2
