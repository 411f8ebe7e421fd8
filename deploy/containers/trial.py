"""A campaign in the containers of compose.yaml, one of each kind killed on the way.

Spans go from the demo's container through the Collector and Kafka to the ingest workers, devices'
metrics through the API and Kafka, and the record is PostgreSQL's: findings equal to what is planted
are there only if all of them work.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Final

import httpx

from deploy.containers.composed import Composed, secrets
from deploy.stack.__main__ import LARGE
from deploy.stack.missing import Missing
from ldfi.cli.client import Client
from ldfi.cli.demo_worlds import STREAMING
from ldfi.errors import ExperimentsError

API: Final = "http://127.0.0.1:8600"
PROMETHEUS: Final = "http://127.0.0.1:9090"
PORTS: Final = (4317, 8600, 8601, 9090, 16686)
HEALTHY_SECONDS: Final = 120.0
SCRAPED: Final = 7
"""An API, two schedulers, two workers, the Collector, Prometheus itself."""

CLASS: Final = "GET /play/*"
SMALL: Final = {"kinds": ["refused"], "treatment": 0.3, "control": 0.3}
"""One class, whose planted weakness is a refused connection: it shows that all parts work, in a
minute or two, also where sixteen services have little of a machine. ``make stack`` tries all."""

FIRST: Final = ("demo", "kafka", "collector")
"""Killed first, while the campaign learns the traffic: without them there is none."""

Say = Callable[[str], None]


@dataclass
class Result:
    """Seconds, and what was found. ``replaced``: from SIGKILL until well again, by service."""

    healthy_seconds: float = 0.0
    replaced: dict[str, float] = field(default_factory=dict)
    campaign_seconds: float = 0.0
    experiments: int = 0
    findings: list[list[str]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return asdict(self)


def trial(composed: Composed, result: Result, say: Say) -> None:
    """Run it from nothing to nothing: no container or volume stays. Raises Missing, and
    ExperimentsError where the service does not do what it should."""
    composed.down(volumes=True)  # of a trial that was killed
    _ports_are_free()
    try:
        result.healthy_seconds = _up(composed, say)
        _campaign(composed, result, say)
        _down_and_up(composed, result, say)
    finally:
        composed.down(volumes=True)
    if result.healthy_seconds > HEALTHY_SECONDS:
        result.wrong.append(f"healthy after {result.healthy_seconds:.0f} s only")


def _ports_are_free() -> None:
    for port in PORTS:
        until(f"port {port}, which compose.yaml publishes, is free", 60.0, partial(_free, port))


def _free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def _up(composed: Composed, say: Say) -> float:
    began = time.monotonic()
    composed.up()
    composed.ready(2 * HEALTHY_SECONDS)
    until("somebody leads", 60.0, lambda: _asked(API, "/api/v1/status"))
    seconds = time.monotonic() - began
    names = ", ".join(each.name for each in composed.containers())
    say(f"healthy after {seconds:.1f} s: {names}")
    return seconds


def _campaign(composed: Composed, result: Result, say: Say) -> None:
    client = Client(API, secrets()["LDFI_ADMIN_TOKEN"])
    until("Prometheus scrapes all", 60.0, lambda: _scraped() == SCRAPED)
    began = time.monotonic()
    campaign = client.post("/campaigns", {**LARGE.campaign, **SMALL, "classes": [CLASS], "seed": 0})
    victims = [*FIRST, *(each for each in composed.services if each not in FIRST)]
    while campaign["state"] == "running":
        if time.monotonic() - began > HEALTHY_SECONDS * 10:
            raise ExperimentsError(f"the campaign has not ended: {campaign}")
        time.sleep(1.0)
        campaign = _again(client, f"/campaigns/{campaign['id']}")
        if victims:
            service = victims.pop(0)
            victim = composed.kill(service)
            result.replaced[service] = composed.replaced(victim, HEALTHY_SECONDS)
            say(f"{victim.name} killed, well again after {result.replaced[service]:.1f} s")
    result.campaign_seconds = time.monotonic() - began
    result.experiments = campaign["experiments"]
    found = {(each["name"], tuple(f)) for each in campaign["classes"] for f in each["findings"]}
    planted = {each for each in STREAMING.planted("") if each[0] == CLASS}
    result.findings = sorted([name, *faults] for name, faults in found)
    say(f"{result.experiments} experiments in {result.campaign_seconds:.0f} s: {result.findings}")
    if victims:
        result.wrong.append(f"the campaign ended before these were killed: {victims}")
    if found != planted:
        result.wrong.append(f"found {sorted(found)}, planted {sorted(planted)}")


def _down_and_up(composed: Composed, result: Result, say: Say) -> None:
    client = Client(API, secrets()["LDFI_ADMIN_TOKEN"])
    before = _record(client)
    composed.down()
    if left := composed.containers():
        result.wrong.append(f"left by down: {left}")
    say(f"down; healthy again after {_up(composed, lambda _line: None):.1f} s")
    after = _record(client)
    kept = [name for name, what in before.items() if what and after[name] == what]
    say(f"still there: {', '.join(kept)}")
    result.wrong += [f"{name} did not outlive down and up" for name in before.keys() - set(kept)]


def _record(client: Client) -> Mapping[str, Any]:
    """Read what must not be lost: all of it the database's."""
    campaigns = _again(client, "/campaigns")["items"]
    return {
        "campaigns": [(each["id"], each["state"]) for each in campaigns],
        "findings": [each["id"] for each in _again(client, "/findings")["items"]],
        "certificates": [
            _again(client, f"/campaigns/{each['id']}/certificates") for each in campaigns
        ],
    }


def _again(client: Client, path: str) -> Any:
    """Ask until there is an answer: whoever answers may just have been killed."""
    end = time.monotonic() + HEALTHY_SECONDS
    while True:
        try:
            return client.get(path)
        except ExperimentsError:
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


def _scraped() -> int:
    """Count the targets that Prometheus says are up."""
    found = _asked(PROMETHEUS, "/api/v1/targets?state=active")
    return sum(each["health"] == "up" for each in found["data"]["activeTargets"]) if found else 0


def _asked(url: str, path: str) -> Any:
    """Ask for JSON; None where there is none."""
    headers = {"Authorization": f"Bearer {secrets()['LDFI_ADMIN_TOKEN']}"}
    try:
        answer = httpx.get(f"{url}{path}", headers=headers, timeout=5.0, trust_env=False)
    except httpx.HTTPError:
        return None
    return answer.json() if answer.is_success else None


def until(what: str, seconds: float, holds: Callable[[], Any]) -> None:
    """Wait for it to hold. Raises Missing."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise Missing(f"not so after {seconds:.0f} s: {what}")
        time.sleep(0.5)
