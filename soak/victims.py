"""The whole stack, of which :mod:`soak.kills` kills one part at a time."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

from deploy.stack.topology import Stack
from soak.checks import Kill
from soak.service import LEASE, TOKENS

TARGETS: Final = ("worker", "broker", "postgresql", "leader", "collector")
WORKERS: Final = ("ingest-1", "ingest-2")
SCHEDULERS: Final = ("scheduler-1", "scheduler-2")
WITHIN_SECONDS: Final = 10.0
"""A new leader has to lead so soon after the last one was killed."""

PATIENCE_SECONDS: Final = 120.0
HOUR: Final = 1_000_000

OPTIONS: Final = {
    "LDFI_TOKENS": ",".join(f"{role}:{token}" for role, token in TOKENS.items()),
    "LDFI_MEMBER_KEY": "the same after every crash",
    "LDFI_LEASE": f"{LEASE}",
    "LDFI_QUIET": "1",
    "LDFI_MEMBERS_PER_HOUR": f"{HOUR}",
    "LDFI_MEMBERS_PER_DAY": f"{2 * HOUR}",
}


@dataclass
class Victims:
    """One part of ``stack`` after the other, drawn from ``targets`` in this order.

    ``killed``: what was killed when. ``recovered``: for each target, the seconds from each kill
    until the API again answered what only a leader knows.
    """

    stack: Stack
    targets: Sequence[str]
    folder: Path
    chance: random.Random
    killed: list[Kill] = field(default_factory=list)
    recovered: dict[str, list[float]] = field(default_factory=dict)
    started_in: list[float] = field(default_factory=list)
    hour: int = HOUR
    _dead: str = ""

    @property
    def database(self) -> str:
        """Return where the record is."""
        return self.stack.database

    @property
    def log(self) -> str:
        """Return the logs of the schedulers."""
        return "".join((self.folder / f"{name}.log").read_text() for name in SCHEDULERS)

    def kill(self) -> float:
        """SIGKILL to the next one. PostgreSQL is started again at once, for others read it."""
        target = self.targets[len(self.killed) % len(self.targets)]
        stack, self._dead = self.stack, target
        if target == "broker":
            stack.broker.kill()
        elif target == "postgresql":
            stack.postgresql.kill()
        elif target == "collector":
            stack.collector.kill()
        else:
            self._dead = self.chance.choice(WORKERS) if target == "worker" else self.leader()
            stack.roles.kill(self._dead)
        at = time.time()
        self.killed.append(Kill(at, target))
        if target == "postgresql":
            stack.postgresql.start()
            stack.postgresql.ready()
        return at

    def start(self) -> None:
        """Start again what was killed last."""
        if self._dead == "broker":
            self.stack.broker.start()
        elif self._dead == "collector":
            self.stack.collector.start()
        elif self._dead in {*WORKERS, *SCHEDULERS}:
            self.stack.roles.start(self._dead)

    def ready(self) -> float:
        """Wait until somebody leads and what was killed is there again; the seconds since then."""
        last = self.killed[-1]
        self.ask("GET", "/status")
        self.recovered.setdefault(last.aim, []).append(time.time() - last.at)
        if self._dead == "broker":
            self.stack.broker.ready()
        elif self._dead == "collector":
            self.stack.collector.ready()
        elif self._dead in {*WORKERS, *SCHEDULERS}:
            self.stack.roles.ready(self._dead)
        self.started_in.append(time.time() - last.at)
        return self.started_in[-1]

    def check(self) -> None:
        """Fail where something has ended by itself."""
        self.stack.processes.check()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the API as an operator, again and again until somebody leads."""
        headers = {
            "Authorization": f"Bearer {TOKENS['operator']}",
            **({"Idempotency-Key": str(uuid.uuid4())} if method == "POST" else {}),
        }
        end = time.monotonic() + PATIENCE_SECONDS
        said = "nobody answered"
        while time.monotonic() < end:
            self.check()
            with suppress(httpx.TransportError):
                url = f"{self.stack.url}/api/v1{path}"
                answer = httpx.request(
                    method, url, json=body, headers=headers, timeout=10.0, trust_env=False
                )
                if answer.status_code < 500 and answer.status_code not in {409, 429}:
                    answer.raise_for_status()
                    return answer.json()
                said = f"{answer.status_code} {answer.text}"
            time.sleep(0.05)
        raise AssertionError(f"{method} {path}: {said}, for {PATIENCE_SECONDS:.0f} s")

    def leader(self) -> str:
        """Return the scheduler that says that it leads."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            self.check()
            for name in SCHEDULERS:
                if self._state(name) == "ready":
                    return name
            time.sleep(0.05)
        raise AssertionError(f"nobody leads for {PATIENCE_SECONDS:.0f} s")

    def _state(self, name: str) -> str:
        """Return the state it reports; those waiting for the leader's end are on standby."""
        try:
            answer = httpx.get(f"{self.stack.roles.url(name)}/readyz", timeout=2.0, trust_env=False)
        except httpx.TransportError:
            return ""
        return str(answer.json()["status"]) if answer.is_success else ""


def late_leaders(recovered: Mapping[str, Sequence[float]]) -> list[str]:
    """Return where it took too long until somebody led again."""
    return [
        f"a new leader led {seconds:.1f} s after the last one was killed"
        for seconds in recovered.get("leader", ())
        if seconds > WITHIN_SECONDS
    ]
