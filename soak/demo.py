"""The assault on the demo's own traffic: sixteen real processes, their real edge, real spans."""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from ldfi.cli.demo_worlds import STREAMING
from ldfi.cli.ports import free_port
from ldfi.cli.processes import Processes
from soak.kills import Assault, Plan
from soak.recorder import LATEST_SECONDS, UNREPORTED
from soak.service import TOKENS, Service

RATES = "boot=26,play=13,search=13"
"""Requests a second: half of what `ldfi demo` serves, for starting the service takes a core."""

SLACK = 1.0
"""Seconds by which the gateway's span may begin later than its edge has decided, under load."""


def assault(
    database: str, folder: Path, plan: Plan, say: Callable[[str], None] = lambda _line: None
) -> Assault:
    """Run it; at the end the findings must be the weaknesses that the demo says it has."""
    service = Service(database, folder, quiet=0.4)
    attack = Assault(
        service, folder / "notes", dict(STREAMING.campaign), plan, slack=SLACK, say=say
    )
    weaknesses = json.loads((files("ldfi.demo") / "weaknesses.json").read_text())
    planted = {(each["class"], tuple(sorted(each["faults"]))) for each in weaknesses}
    service.start()
    try:
        service.ready()
        with Processes(folder) as processes:
            _start_demo(processes, service, attack.notes)
            attack.run(planted)
            time.sleep(LATEST_SECONDS)  # the last devices report, and the witness writes
            processes.check()
    finally:
        service.stop()
    treated = attack.witnessed(planted)
    if unreported := sum(each.device == UNREPORTED for each in treated):
        attack.wrong[f"{unreported} treated requests of which no device has reported"] = None
    return attack


def _start_demo(processes: Processes, service: Service, notes: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    recorder = [sys.executable, "-m", "soak.recorder", "--port", str(port)]
    processes.start("recorder", [*recorder, "--service", service.url, "--notes", str(notes)], {})
    application = [sys.executable, "-m", "ldfi.demo", "--devices", str(STREAMING.devices)]
    ready = processes.start(
        "demo",
        [*application, "--rates", RATES],
        {
            "FIT_KEYS": f"demo:{secrets.token_urlsafe(24)}",
            "LDFI_URL": url,
            "LDFI_TOKEN": TOKENS["edge"],
            "LDFI_DEVICE_TOKEN": TOKENS["devices"],
            "OTEL_EXPORTER_OTLP_ENDPOINT": url,
            "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{TOKENS['ingest']}",
            "OTEL_SEMCONV_STABILITY_OPT_IN": "http",
        },
    ).readline()
    if not ready:
        processes.check()
        raise AssertionError("the demo has not started")
