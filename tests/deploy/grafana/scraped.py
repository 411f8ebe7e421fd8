"""A real Prometheus that scrapes a real service, on which a campaign runs."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from ldfi.cli.ports import free_port
from ldfi.cli.processes import Processes
from soak.service import TOKENS, Service
from soak.synthetic import CAMPAIGN
from tests.deploy.programs import DEPLOY, prometheus

SCRAPE_SECONDS = 1
SHOWN_SECONDS = 60
"""What is shown: everything there is, since the service has just been started."""

PATIENCE = 90.0


@dataclass(frozen=True, slots=True)
class Prometheus:
    """Asks as Grafana does."""

    url: str

    def series(self, expr: str) -> list[dict[str, Any]]:
        """What a panel's query gives over the time that is shown; raises where it is refused."""
        filled = expr.replace("$__rate_interval", f"{10 * SCRAPE_SECONDS}s")
        now = time.time()
        asked: dict[str, str | float] = {
            "query": filled,
            "start": now - SHOWN_SECONDS,
            "end": now,
            "step": SCRAPE_SECONDS,
        }
        told = httpx.get(f"{self.url}/api/v1/query_range", params=asked, trust_env=False)
        answer = told.raise_for_status().json()
        assert answer["status"] == "success", (filled, answer)
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def value(self, expr: str) -> float | None:
        """The newest value; None where there is none."""
        found = self.series(expr)
        return float(found[0]["values"][-1][1]) if found else None

    def rules(self) -> list[dict[str, Any]]:
        """The alert rules, with how Prometheus fared with each."""
        groups = httpx.get(f"{self.url}/api/v1/rules", trust_env=False).json()["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]


@contextmanager
def scraped(folder: Path) -> Iterator[Prometheus]:
    """The service in the middle of a campaign, after a halt; with Prometheus beside it."""
    program = prometheus()
    service = Service(f"sqlite:///{folder / 'ldfi.sqlite3'}", folder)
    service.start()
    try:
        service.ready()
        with Processes(folder) as processes:
            traffic = [sys.executable, "-m", "soak.traffic"]
            notes = ["--notes", str(folder / "notes"), "--rate", "160"]
            processes.start("traffic", [*traffic, "--url", service.url, *notes], {})
            beside = Prometheus(_start(processes, program, folder, service))
            httpx.get(f"{service.url}/api/v1/status", trust_env=False)  # without a token: refused
            service.ask("POST", "/campaigns", {**CAMPAIGN, "name": "scraped"})
            _until(processes, beside, "sum(ldfi_experiments_ended_total) > 2")
            _until(processes, beside, "max(increase(ldfi_members_hurt_total[1m])) > 0")
            service.ask("POST", "/halt", {"reason": "to be seen in Grafana"})
            _until(processes, beside, "max(ldfi_halted) == 1")
            service.ask("POST", "/resume", {"reason": "seen"})
            _until(processes, beside, "max(changes(ldfi_halted[1h])) == 2")
            yield beside
    finally:
        service.stop()


def _start(processes: Processes, program: str, folder: Path, service: Service) -> str:
    shutil.copy(DEPLOY / "prometheus" / "rules.yml", folder)
    (folder / "token").write_text(TOKENS["operator"])
    target = service.url.removeprefix("http://")
    job = {
        "job_name": "ldfi",
        "authorization": {"credentials_file": str(folder / "token")},
        "static_configs": [{"targets": [target]}],
    }
    every = f"{SCRAPE_SECONDS}s"
    settings = {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
        "rule_files": ["rules.yml"],
        "scrape_configs": [job],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
    address = f"127.0.0.1:{free_port()}"
    words = [
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'series'}",
        f"--web.listen-address={address}",
    ]
    processes.start("prometheus", [program, *words], {})
    return f"http://{address}"


def _until(processes: Processes, beside: Prometheus, expr: str) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        processes.check()
        with suppress(httpx.HTTPError):  # it says 503 until it has read what it kept
            if beside.value(expr) is not None:
                return
        time.sleep(0.5)
    raise AssertionError(f"never within {PATIENCE:.0f} s: {expr}")
