"""What services must be told so that a test can be explored: one block of variables."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from typing import Final

from ldfi.experiments.domain.traffic.waiting_times import EXPORT
from ldfi.explore.external.stamp import SharedKeys

RECEIVE: Final = "LDFI_RECEIVE"
"""Where the spans of services in other processes are received: ``HOST:PORT``."""

INTERVAL: Final = "OTEL_BSP_SCHEDULE_DELAY"
"""How often services export, in milliseconds (OpenTelemetry's name)."""

BACK_OFF: Final = 150.0
"""Seconds for which an exporter may keep away from a port at which nobody listened: a channel of
gRPC waits for 120 s, give or take a fifth."""

BACK_OFF_VARIABLE: Final = "LDFI_BACK_OFF"

AT_ONCE: Final = 0.1
"""Seconds between two exports of a service that is under test."""

DEFAULT: Final = "127.0.0.1:4318"
"""Where OpenTelemetry's exporters send to where nobody says anything."""


def variables(known: SharedKeys, endpoint: str) -> dict[str, str]:
    """List the variables of a service that exports to ``endpoint`` (a URL)."""
    return {
        "FIT_KEYS": known.text,
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{known.token}",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_PROPAGATORS": "tracecontext,baggage",
        INTERVAL: f"{AT_ONCE * 1000:.0f}",
    }


def export_interval(otherwise: float = EXPORT) -> float:
    """Return how often services export (seconds): as this process's environment says, which is
    theirs where the block was given to both."""
    said = os.environ.get(INTERVAL, "")
    return int(said) / 1000 if said.isdecimal() and int(said) > 0 else otherwise


def back_off() -> float:
    """Return how long exporters are waited for that have met a closed port (seconds)."""
    said = os.environ.get(BACK_OFF_VARIABLE, "")
    return float(said) if said.isdecimal() else BACK_OFF


def as_shell(block: Mapping[str, str]) -> str:
    """Write it for ``eval "$(…)"``."""
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in block.items())


def as_compose(block: Mapping[str, str]) -> str:
    """Write it for each service of a compose file."""
    lines = [f"  {name}: {json.dumps(value)}" for name, value in block.items()]
    hosts = ["extra_hosts:", '  - "host.docker.internal:host-gateway"']
    return "\n".join(["environment:", *lines, *hosts])


def as_kubernetes(block: Mapping[str, str]) -> str:
    """Write it for a container of a pod."""
    lines = ["env:"]
    for name, value in block.items():
        lines += [f"  - name: {name}", f"    value: {json.dumps(value)}"]
    return "\n".join(lines)
