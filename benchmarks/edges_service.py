"""The service of :mod:`benchmarks.edges`: real processes, and what they take.

PostgreSQL, one leader (``--role scheduler``) and relays (``--role api``). One class of requests is
made known by spans, as services send them; their roots say that all went well.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from deploy.stack import postgresql
from ldfi.cli.ports import free_port
from ldfi.cli.processes import Processes
from ldfi.fit.protocol import attributes

START_SECONDS: Final = 180.0
TOKENS: Final = {role: f"{role}-of-the-benchmark" for role in ("admin", "ingest", "edge")}
PATH: Final = "/boot"
CLASS: Final = f"GET {PATH}"
POINT: Final = "api>http:GET:dependency/things/*"
OPTIONS: Final = {
    "LDFI_TOKENS": ",".join(f"{role}:{token}" for role, token in TOKENS.items()),
    "LDFI_MEMBER_KEY": "the same in all processes of the benchmark",
    "LDFI_OUTCOMES": "root",
    "LDFI_QUIET": "0.2",
    "LDFI_MEMBERS_PER_HOUR": "1000000",
    "LDFI_MEMBERS_PER_DAY": "1000000",
}
REQUESTS: Final = 150
"""So many a class must have had; and some of them lately, before each experiment."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a process has taken so far: seconds of processor time, and bytes of memory now."""

    cpu: float
    memory: int


@dataclass
class Site:
    """The service. ``relays``: their addresses."""

    leader: str
    relays: list[str]
    pids: dict[str, int]

    @property
    def names(self) -> list[str]:
        """Names of its processes, the leader's first."""
        return list(self.pids)

    def taken(self) -> dict[str, Taken]:
        """Read what each process has taken so far."""
        return {name: taken(pid) for name, pid in self.pids.items()}

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the leader as an admin. Raises httpx.HTTPStatusError."""
        answer = httpx.request(
            method,
            f"{self.leader}/api/v1{path}",
            json=body,
            headers={"Authorization": f"Bearer {TOKENS['admin']}"},
            timeout=60.0,
            trust_env=False,
        )
        answer.raise_for_status()
        return answer.json()

    def send(self, requests: int) -> None:
        """Send the spans of so many requests that went well."""
        answer = httpx.post(
            f"{self.leader}/v1/traces",
            content=spans(requests),
            headers={
                "Authorization": f"Bearer {TOKENS['ingest']}",
                "Content-Type": "application/x-protobuf",
            },
            timeout=60.0,
            trust_env=False,
        )
        answer.raise_for_status()


@contextmanager
def running(relays: int) -> Iterator[Site]:
    """Run the service for as long as the block lasts. Raises Missing without PostgreSQL."""
    with (
        postgresql.running() as server,
        TemporaryDirectory() as folder,
        Processes(Path(folder)) as processes,
    ):
        environment = {**OPTIONS, "LDFI_DATABASE_URL": server.url(server.create())}
        leader = _started(processes, "leader", "scheduler", environment)
        until(lambda: _is_ready(leader), "the leader leads", processes.check)
        names = [f"relay {number}" for number in range(1, relays + 1)]
        urls = [_started(processes, name, "api", environment) for name in names]
        for url in urls:
            until(lambda url=url: _is_ready(url), f"{url} answers", processes.check)  # type: ignore[misc]
        site = Site(leader, urls, {name: processes.pid(name) for name in ("leader", *names)})
        site.send(REQUESTS)
        until(lambda: _known(site), f"{CLASS} is known", processes.check)
        yield site


def _started(processes: Processes, name: str, role: str, environment: dict[str, str]) -> str:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    serve = [sys.executable, "-m", "ldfi.cli", "serve", "--role", role]
    own = {"LDFI_GRPC_PORT": "off", **environment, "LDFI_ADVERTISE_URL": url}
    processes.start(name, [*serve, "--port", f"{port}"], own)
    return url


def _is_ready(url: str) -> bool:
    with suppress(httpx.HTTPError):
        return httpx.get(f"{url}/readyz", timeout=2.0, trust_env=False).is_success
    return False


def _known(site: Site) -> bool:
    return any(each["name"] == CLASS for each in site.ask("GET", "/classes"))


def until(holds: Callable[[], bool], what: str, check: Callable[[], None] = lambda: None) -> None:
    """Wait until something holds. Raises TimeoutError."""
    end = time.monotonic() + START_SECONDS
    while not holds():
        check()
        if time.monotonic() > end:
            raise TimeoutError(f"after {START_SECONDS:.0f} s it still is not so that {what}")
        time.sleep(0.1)


def taken(pid: int) -> Taken:
    """Read what a process has taken so far, from the kernel."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    memory = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    return Taken(ticks / os.sysconf("SC_CLK_TCK"), memory)


def spans(requests: int) -> bytes:
    """Write requests of the class as OTLP: a root, and a call that went well."""
    written = ExportTraceServiceRequest()
    group = written.resource_spans.add()
    group.resource.attributes.add(key="service.name").value.string_value = "api"
    scope = group.scope_spans.add()
    now = time.time_ns()
    for _ in range(requests):
        trace, root = random.randbytes(16), random.randbytes(8)
        for number, told in enumerate(
            (
                {"http.request.method": "GET", "url.full": f"http://api{PATH}"},
                {attributes.POINT: POINT},
            )
        ):
            span = scope.spans.add(
                trace_id=trace,
                span_id=random.randbytes(8) if number else root,
                parent_span_id=root if number else b"",
                name="GET",
                kind=3 if number else 2,  # CLIENT, SERVER
                start_time_unix_nano=now + number,
                end_time_unix_nano=now + 1_000_000 - number,
            )
            span.status.code = 1  # type: ignore[assignment]
            for key, value in told.items():
                span.attributes.add(key=key).value.string_value = value
    return written.SerializeToString()
