"""The demo application as a staging system: real processes, no devices, and nobody who watches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from ldfi.experiments.cli.ports import free_port
from ldfi.experiments.scenarios.scenario import of_document

KEY = "staging:0123456789abcdef"
DEVICE = "engineer-7"
LICENSE = "error@api>http:GET:license/licenses/*"


@dataclass(frozen=True)
class Staging:
    """Its services send their spans to ``otlp`` (HOST:PORT), where somebody may listen."""

    url: str
    otlp: str

    def repair(self, weakness: str) -> None:
        """Let the code behave as if somebody had fixed it."""
        httpx.post(f"{self.url}/_demo/repair/{weakness}").raise_for_status()

    def break_again(self, weakness: str) -> None:
        """Bring the weakness back."""
        httpx.delete(f"{self.url}/_demo/repair/{weakness}").raise_for_status()


@contextmanager
def staging(log: Path) -> Iterator[Staging]:
    """Start it, and leave nothing behind."""
    otlp = f"127.0.0.1:{free_port()}"
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("OTEL_")},
        "FIT_KEYS": KEY,
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{otlp}",
        "OTEL_SEMCONV_STABILITY_OPT_IN": "http",
    }
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "ldfi.demo", "--no-devices"],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            ready = process.stdout.readline()
            assert ready, log.read_text()
            yield Staging(json.loads(ready)["gateway"], otlp)
        finally:
            process.terminate()


def scenario_file(folder: Path, *faults: str, path: str = "/play/7", **parts: object) -> Path:
    """A scenario of the demo in a file."""
    document = {
        "version": 1,
        "id": "7c1e55aa0b12",
        "title": "GET /play/* fails without a licence",
        "request_class": {"name": "GET /play/*"},
        "request": {"method": "GET", "path": path, "headers": {"x-device-type": "tv"}},
        "faults": list(faults or (LICENSE,)),
        "delay": 1.0,
        "environment": {"ldfi": "0.1.0"},
        **parts,
    }
    file = folder / "scenario.yaml"
    file.write_text(of_document(document).to_yaml())
    return file
