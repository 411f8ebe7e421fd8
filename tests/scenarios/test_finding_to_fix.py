"""From a finding to a fix that stays fixed, on real processes: the service, the demo, its devices.

About a minute on an idle machine.
"""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from ldfi.cli.client import Client
from ldfi.cli.main import app
from ldfi.cli.ports import free_port
from ldfi.cli.processes import Processes
from tests.scenarios.staging import DEVICE

pytestmark = pytest.mark.long

LICENSE = "refused@api>http:GET:license/licenses/*"
"""As a campaign finds it: what an error is at a point over HTTP."""

PATIENCE = 240.0
"""Seconds that a step may take on a machine that is busy with other things."""

CAMPAIGN = {
    "classes": ["GET /play/*"],
    "kinds": ["error"],
    "max_size": 1,
    "max_union": None,
    "treatment": 0.5,
    "control": 0.5,
    "min_traffic": 25,
    "min_consistency": 0.0,
    "delta": 0.4,
    "min_samples": 6,
    "settle": 2.0,
    "follow": 0.0,
    "apart": 0.0,
    "window": 60.0,
    "rechecks": 0,
}
TOKENS = {role: f"{role}-{secrets.token_hex(12)}" for role in ("operator", "edge", "ingest")}
TOKENS["devices"] = f"devices-{secrets.token_hex(12)}"
KEY = f"demo:{secrets.token_hex(16)}"


class World:
    """The service, and the demo application with devices that play titles."""

    def __init__(self, processes: Processes, folder: Path) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        self.processes = processes
        serve = [sys.executable, "-m", "ldfi.cli", "serve"]
        place = ["--port", self.url.rpartition(":")[2], "--database", str(folder / "db.sqlite3")]
        tokens = ",".join(f"{role}:{token}" for role, token in TOKENS.items())
        processes.start("ldfi", [*serve, *place], {"LDFI_TOKENS": tokens, "LDFI_QUIET": "1.5"})
        until(self._ready)
        self.client = Client(self.url, TOKENS["operator"])
        ready = processes.start(
            "demo",
            [sys.executable, "-m", "ldfi.demo", "--rates", "play=6", "--devices", "300"],
            {
                "FIT_KEYS": KEY,
                "LDFI_URL": self.url,
                "LDFI_TOKEN": TOKENS["edge"],
                "LDFI_DEVICE_TOKEN": TOKENS["devices"],
                "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
                "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{TOKENS['ingest']}",
                "OTEL_SEMCONV_STABILITY_OPT_IN": "http",
            },
        ).readline()
        processes.check()
        self.gateway = json.loads(ready)["gateway"]

    def _ready(self) -> bool:
        self.processes.check()
        try:
            return httpx.get(f"{self.url}/readyz", timeout=2.0).is_success
        except httpx.HTTPError:
            return False

    def campaign_until(self, state: str) -> dict[str, Any]:
        """Run a campaign until the finding of the licence is in a state; the finding."""
        campaign = self.client.post("/campaigns", CAMPAIGN)
        found: dict[str, Any] = until(lambda: self._licence(state))
        self.client.post(f"/campaigns/{campaign['id']}/stop", {"reason": "seen enough"})
        return found

    def _licence(self, state: str) -> dict[str, Any] | None:
        self.processes.check()
        found: list[dict[str, Any]] = self.client.get("/findings", state=state)["items"]
        return next((each for each in found if each["faults"] == [LICENSE]), None)

    def reproduce(self, finding: str) -> tuple[int, dict[str, Any]]:
        """As an engineer does it; exit code and what was found."""
        done = CliRunner().invoke(
            app,
            [
                *("reproduce", finding, "--target", self.gateway, "--device", DEVICE),
                *("--path", "/play/7", "--times", "2", "--json"),
            ],
            env={"FIT_KEYS": KEY, "LDFI_URL": self.url, "LDFI_TOKEN": TOKENS["operator"]},
        )
        assert done.stdout, done.exception
        return done.exit_code, json.loads(done.stdout)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with Processes(tmp_path) as processes:
        running = World(processes, tmp_path)
        yield running
        running.client.close()


def until(condition: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.3)
    raise AssertionError(f"it did not come to this within {PATIENCE:.0f} s")


@pytest.mark.timeout(900)
def test_from_a_finding_to_a_fix_that_stays_fixed(world: World) -> None:
    weakness = f"{world.gateway}/_demo/repair/play-license"

    finding = world.campaign_until("open")["id"]
    scenario = world.client.get(f"/findings/{finding}/scenario")
    assert scenario["request"]["path"] == "/play/*"
    assert scenario["seen"]["error_code"] == "http_502"
    assert scenario["lineage"]["observed"]
    code, replayed = world.reproduce(finding)
    assert (code, replayed["verdict"]) == (1, "fails"), replayed
    assert replayed["fired"] == [LICENSE]
    differing = [row for row in replayed["lineage"] if row["without"] != row["with"]]
    assert {
        "depth": 0,
        "call": LICENSE.partition("@")[2],
        "without": "ok",
        "with": "refused injected, failed",
    } in differing

    httpx.post(weakness).raise_for_status()
    code, replayed = world.reproduce(finding)
    assert (code, replayed["verdict"]) == (0, "fixed"), replayed
    assert world.campaign_until("fixed")["id"] == finding

    httpx.delete(weakness).raise_for_status()
    assert world.reproduce(finding)[0] == 1
    assert world.campaign_until("regressed")["id"] == finding
