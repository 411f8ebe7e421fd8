"""The Collector's configuration, in a real Collector: what it keeps, and what it leaves out."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from tests.deploy.programs import DEPLOY, collector
from tests.deploy.sink import Sink, free_ports, listening, until

FOLDER = DEPLOY / "collector"
ONLY_LDFI = "yaml:service::pipelines::traces::exporters: [otlp_http/ldfi]"
TOKEN = "ingest-0123456789abcdef"


def configs(*more: str) -> list[str]:
    files = [str(FOLDER / "collector.yaml"), *more]
    return [word for each in files for word in ("--config", each)]


@contextmanager
def running(endpoint: str, log: Path, **variables: str) -> Iterator[str]:
    """A Collector that exports to ``endpoint``; the address at which it takes spans."""
    otlp, grpc, health, metrics = free_ports(4)
    environment = {
        **os.environ,
        **variables,
        "LISTEN": "127.0.0.1",
        "OTLP_HTTP_PORT": otlp,
        "OTLP_GRPC_PORT": grpc,
        "HEALTH_PORT": health,
        "METRICS_PORT": metrics,
        "LDFI_ENDPOINT": endpoint,
        "LDFI_INGEST_TOKEN": TOKEN,
    }
    words = configs(str(FOLDER / "without-kafka.yaml"), ONLY_LDFI)
    with log.open("w") as file:
        process = subprocess.Popen(
            [collector(), *words], env=environment, stdout=file, stderr=subprocess.STDOUT
        )
    try:
        until(lambda: healthy(f"http://127.0.0.1:{health}") or process.poll() is not None, 30)
        assert process.poll() is None, log.read_text()
        yield f"http://127.0.0.1:{otlp}"
    finally:
        process.terminate()
        process.wait(20)


def healthy(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def export(
    client: httpx.Client,
    trace_id: str,
    number: int,
    service: str = "api",
    error: bool = False,
    **marks: str,
) -> None:
    """Send one span of a trace, by itself: its number is its id, and the parent's is one less."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = service
    span = resource.scope_spans.add().spans.add()
    span.trace_id, span.span_id = bytes.fromhex(trace_id), number.to_bytes(8, "big")
    span.parent_span_id = (number - 1).to_bytes(8, "big") if number > 1 else b""
    span.name, span.start_time_unix_nano = f"call {number}", time.time_ns()
    span.end_time_unix_nano = span.start_time_unix_nano + 1_000_000
    span.status.code = Status.STATUS_CODE_ERROR if error else Status.STATUS_CODE_UNSET
    for name, value in marks.items():
        span.attributes.add(key=name.replace("_", ".")).value.string_value = value
    answer = client.post(
        "/v1/traces",
        content=request.SerializeToString(),
        headers={"content-type": "application/x-protobuf"},
    )
    assert answer.status_code == 200


def traces(kind: int, count: int) -> list[str]:
    return [f"{kind:08x}{number:024x}" for number in range(1, count + 1)]


def send(url: str, trace_ids: list[str], **what: str | bool) -> None:
    """Traces of three spans, the innermost first; only the second one is marked."""
    service = str(what.pop("service", "api"))
    with httpx.Client(base_url=url, trust_env=False) as client:
        for trace_id in trace_ids:
            for number in (3, 2, 1):
                marks = what if number == 2 else {}
                export(client, trace_id, number, service, **marks)  # type: ignore[arg-type]


@pytest.mark.parametrize("more", [(), (str(FOLDER / "without-kafka.yaml"),)])
def test_the_configuration_is_valid(more: tuple[str, ...]) -> None:
    checked = subprocess.run(
        [collector(), "validate", *configs(*more)],
        env={**os.environ, "LDFI_INGEST_TOKEN": TOKEN},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr


def test_every_trace_with_a_failure_context_is_kept_whole_and_no_other(tmp_path: Path) -> None:
    # Given a Collector that samples nothing that it need not keep
    sink = Sink()
    plain, treated, control, failed, own = (traces(kind, 20) for kind in range(1, 6))
    with (
        listening(sink) as endpoint,
        running(endpoint, tmp_path / "log", SAMPLED_PERCENT="0", DECISION_WAIT="1s") as url,
    ):
        # When requests of all sorts come in, span by span
        send(url, plain)
        send(url, treated, fit_experiment="e1", fit_arm="treatment")
        send(url, control, fit_experiment="e1", fit_arm="control")
        send(url, failed, error=True)
        send(url, own, service="ldfi", fit_experiment="e1", error=True)
        expected = dict.fromkeys([*treated, *control, *failed], 3)
        # Then what matters arrives, all of it, and what does not is decided on by then too
        until(lambda: len(sink.spans) >= len(expected), 20)
        time.sleep(2.5)
    assert dict(sink.spans) == expected
    assert sink.tokens == {f"Bearer {TOKEN}"}


def test_the_share_of_the_rest_is_what_was_asked_for(tmp_path: Path) -> None:
    sink, plain = Sink(), traces(6, 20)
    with (
        listening(sink) as endpoint,
        running(endpoint, tmp_path / "log", SAMPLED_PERCENT="100", DECISION_WAIT="1s") as url,
    ):
        send(url, plain)
        until(lambda: len(sink.spans) >= len(plain), 20)
    assert dict(sink.spans) == dict.fromkeys(plain, 3)
