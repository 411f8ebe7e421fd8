"""The OpenTelemetry Collector with our configuration, on ports of its own. For tests and trials."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from deploy.stack.missing import Missing
from ldfi.cli.ports import free_port

FOLDER = Path(__file__).parents[1] / "collector"
ONLY_KAFKA = "yaml:service::pipelines::traces::exporters: [kafka]"
"""Laid over our configuration: there is no Jaeger."""

START_SECONDS = 60.0
STOP_SECONDS = 20.0


@dataclass
class Collector:
    """One Collector. It can be killed, and started again on the same ports.

    ``more``: configuration laid over ours. ``variables``: what collector.yaml reads. Its queue on
    disk is beside its ``log``.
    """

    binary: Path
    log: Path
    more: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    health: int = field(default_factory=free_port)
    metrics: int = field(default_factory=free_port)
    _grpc: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return where it takes spans, OTLP over HTTP."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it; :meth:`ready` waits for it."""
        environment = {
            **os.environ,
            **self.variables,
            "LISTEN": "127.0.0.1",
            "OTLP_HTTP_PORT": f"{self.port}",
            "OTLP_GRPC_PORT": f"{self._grpc}",
            "HEALTH_PORT": f"{self.health}",
            "METRICS_PORT": f"{self.metrics}",
            "QUEUE_DIRECTORY": f"{self.log}.queue",
        }
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [self.binary, *configs(*self.more)],
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for whoever started it, who stops it when done
            )

    def ready(self) -> None:
        """Wait until it is. Raises Missing."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self._process is None or self._process.poll() is not None:
                break
            if _answers(f"http://127.0.0.1:{self.health}"):
                return
            time.sleep(0.05)
        raise Missing(f"the Collector did not start: {self.log.read_text()[-2000:]}")

    def kill(self) -> None:
        """End it without a word."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Let it export what it has, and end."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None


def configs(*more: str) -> list[str]:
    """List the options that name our configuration, and what is laid over it."""
    files = [str(FOLDER / "collector.yaml"), *more]
    return [word for each in files for word in ("--config", each)]


def installed() -> Path:
    """Find the Collector as ``deploy/collector/build`` leaves it in the cache. Raises Missing."""
    build = FOLDER / "build"
    asked = subprocess.run([build, "--where"], capture_output=True, text=True, check=True)
    binary = Path(asked.stdout.strip())
    if not binary.exists():
        raise Missing(f"there is no OpenTelemetry Collector: run {build} (needs Go), once")
    return binary


@contextmanager
def running(log: Path, *more: str, **variables: str) -> Iterator[Collector]:
    """Run a Collector for as long as the block lasts. Raises Missing."""
    collector = Collector(installed(), log, more, variables)
    try:
        collector.start()
        collector.ready()
        yield collector
    finally:
        collector.stop()


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=1.0, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False
