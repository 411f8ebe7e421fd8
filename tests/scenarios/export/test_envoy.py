"""What is exported for Envoy, in a real Envoy, with a real ldfi-proxy that it asks."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ldfi.cli.ports import free_port
from ldfi.fit.protocol.context import Arm, encode
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.keys import Keys
from ldfi.scenarios.export.envoy import PATIENCE, listener
from tests.fit.golang import PROXY, built
from tests.kit.frozen import freeze
from tests.scenarios.export.proxy import Proxy, envoy

pytestmark = pytest.mark.servers

KEYS = Keys.parse("k1:0123456789abcdef")
PARENT = "b7ad6b7169203331"
REFUSED = (
    "upstream connect error or disconnect/reset before headers. "
    "reset reason: remote connection failure"
)


class Collector:
    """Takes proofs over OTLP."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, dict[str, str]]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def take(self, request: ExportTraceServiceRequest) -> None:
        for resource in request.resource_spans:
            (service,) = [a.value.string_value for a in resource.resource.attributes]
            for scope in resource.scope_spans:
                for span in scope.spans:
                    told = {a.key: a.value.string_value for a in span.attributes}
                    told |= {"service": service, "parent": span.parent_span_id.hex()}
                    self.spans.append((span.trace_id.hex(), told))

    def of(self, trace: str, seconds: float = 5) -> dict[str, str]:
        """Wait for the one span of a trace that is no mark: those leave before the fault."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = [told for of, told in self.spans if of == trace and "fit.mark" not in told]
            if found:
                assert len(found) == 1
                return found[0]
            time.sleep(0.05)
        return {}


@contextmanager
def processor(binary: Path, port: int, collector: Collector) -> Iterator[subprocess.Popen[bytes]]:
    environment = {
        "FIT_KEYS": "k1:0123456789abcdef",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "PATH": os.environ["PATH"],
    }
    words = [str(binary), "envoy", "--listen", f"127.0.0.1:{port}"]
    with subprocess.Popen(words, env=environment) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.terminate()


class Standing:
    """Envoy, and the processor that it asks."""

    def __init__(self, proxy: Proxy, asked: subprocess.Popen[bytes], collector: Collector) -> None:
        self.proxy, self.asked, self.collector = proxy, asked, collector

    @property
    def authority(self) -> str:
        return self.proxy.url.removeprefix("http://")

    def point(self, rest: str = "/titles/*", method: str = "GET") -> str:
        return f"api>http:{method}:{self.authority}{rest}"

    def ask(
        self,
        kind: str = "error",
        *,
        point: str | None = None,
        arm: Arm = "treatment",
        expires: float = 60,
        first: int = 0,
        delay_ms: int = 200,
        trace: str | None = None,
        keys: Keys = KEYS,
        content_type: str = "text/plain",
        path: str = "/titles/17?limit=3",
        method: str = "GET",
    ) -> tuple[int, str, str]:
        """Ask with a context that names one fault: status, body, the status of gRPC."""
        fault = Fault(point or self.point(), kind, first)
        value = encode(keys, "e7c1", arm, int(time.time() + expires), [fault], delay_ms=delay_ms)
        parent = f"00-{trace or secrets.token_hex(16)}-{PARENT}-01"
        headers = {"traceparent": parent, "content_type": content_type}
        answer = self.proxy.ask(path, method=method, baggage=f"a=b,fit={value},c=d", **headers)
        return answer.status_code, answer.text, answer.headers.get("grpc-status", "")


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    folder = tmp_path_factory.mktemp("envoy")
    binary, port, collector = built(PROXY, folder), free_port(), Collector()
    # A machine that stands still for as long as Envoy is patient would have it let faults through
    exported = json.loads(json.dumps(listener("api", "127.0.0.1", port)).replace(PATIENCE, "0.5s"))
    with (
        processor(binary, port, collector) as asked,
        envoy(exported["http_filters"], folder, exported["clusters"]) as running,
    ):
        found = Standing(running, asked, collector)
        deadline = time.monotonic() + 20
        while found.ask()[0] != 503 and time.monotonic() < deadline:
            time.sleep(0.1)
        yield found


def test_each_kind_is_answered_and_proved(standing: Standing) -> None:
    for kind, answer in (
        ("error", (503, "fault injected", "")),
        ("status:404", (404, "fault injected", "")),
        ("refused", (503, REFUSED, "")),
        ("empty", (200, "", "")),
        ("delay", (200, "ratings", "")),
    ):
        trace = secrets.token_hex(16)
        assert standing.ask(kind, trace=trace) == answer, kind
        proof = standing.collector.of(trace)
        assert proof["fit.fired"] == kind
        assert proof["fit.point"] == standing.point()
        assert (proof["service"], proof["parent"]) == ("api", PARENT)


def test_a_refused_connection_is_what_envoy_itself_says(standing: Standing) -> None:
    answer = standing.proxy.ask("/titles/17", to="closed")

    assert (answer.status_code, answer.text) == (503, REFUSED)


def test_a_procedure_call_ends_with_its_own_status(standing: Standing) -> None:
    point = f"api>rpc:Get:{standing.authority}/shop.Prices"
    for kind, code in (("error", "14"), ("grpc:NOT_FOUND", "5"), ("refused", "14")):
        answer = standing.ask(
            kind,
            point=point,
            path="/shop.Prices/Get",
            method="POST",
            content_type="application/grpc",
        )
        assert (answer[0], answer[2]) == (200, code), kind


def test_what_a_proxy_cannot_show_is_not_claimed(standing: Standing) -> None:
    trace = secrets.token_hex(16)
    for kind in ("reset", "timeout", "truncated", "grpc:ABORTED", "status:499", "sql:lost"):
        assert standing.ask(kind, trace=trace)[:2] == (200, "ratings"), kind
    assert standing.collector.of(trace, seconds=1) == {}


def test_nothing_is_obeyed_that_is_not_signed_valid_and_meant(standing: Standing) -> None:
    fine = (200, "ratings", "")
    assert standing.ask(keys=Keys.parse("k1:not-the-right-key")) == fine
    assert standing.ask(expires=-1) == fine
    assert standing.ask(point=standing.point("/titles")) == fine
    assert standing.ask(point=standing.point(method="POST")) == fine
    assert standing.proxy.ask("/titles/17").text == "ratings"
    assert standing.proxy.ask("/titles/17", baggage="fit=1.2.3,a=b").text == "ratings"


def test_the_control_arm_and_the_first_calls(standing: Standing) -> None:
    trace = secrets.token_hex(16)
    assert standing.ask(arm="control", trace=trace)[:2] == (200, "ratings")
    assert standing.collector.of(trace)["fit.would_fire"] == "error"
    trace = secrets.token_hex(16)
    assert [standing.ask(first=2, trace=trace)[0] for _ in range(3)] == [503, 503, 200]


def test_side_by_side_only_the_requests_that_carry_it_fail(standing: Standing) -> None:
    elsewhere = standing.point("/elsewhere")
    with ThreadPoolExecutor(2) as pool:
        points = [standing.point() if i % 4 == 0 else elsewhere for i in range(100)]
        answers = list(pool.map(lambda point: standing.ask(point=point)[0], points))

    assert answers == [503 if i % 4 == 0 else 200 for i in range(100)]


def test_a_processor_that_hangs_or_is_gone_is_as_if_it_were_not_there(standing: Standing) -> None:
    freeze(standing.asked)
    began = time.monotonic()
    assert [standing.ask()[:2] for _ in range(5)] == [(200, "ratings")] * 5
    assert time.monotonic() - began < 5 * 1.0
    standing.asked.send_signal(signal.SIGCONT)
    assert standing.ask()[0] == 503
    standing.asked.kill()
    standing.asked.wait()
    assert [standing.ask()[:2] for _ in range(5)] == [(200, "ratings")] * 5
