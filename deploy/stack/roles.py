"""The service in its roles: one API, two schedulers of which one leads, two ingest workers."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import httpx

from deploy.stack.missing import Missing
from ldfi.cli.ports import free_port
from ldfi.cli.processes import Processes

ROLES: Final = {
    "api": "api",
    "scheduler-1": "scheduler",
    "scheduler-2": "scheduler",
    "ingest-1": "ingest",
    "ingest-2": "ingest",
}
"""Names of the processes, and the role of each."""

START_SECONDS: Final = 180.0


@dataclass
class Roles:
    """``environment``: the variables that all of them are given. ``doors``: where some listen for
    halts alone."""

    processes: Processes
    environment: Mapping[str, str]
    ports: dict[str, int] = field(default_factory=lambda: {name: free_port() for name in ROLES})
    doors: dict[str, int] = field(default_factory=lambda: {"api": free_port()})

    def url(self, name: str) -> str:
        """Return where this one listens."""
        return f"http://127.0.0.1:{self.ports[name]}"

    def start(self, name: str) -> None:
        """Start it; :meth:`ready` waits for it."""
        door = {"LDFI_HALT_PORT": f"{self.doors[name]}"} if name in self.doors else {}
        self.processes.start(
            name,
            [
                *(sys.executable, "-m", "ldfi.cli", "serve"),
                *("--role", ROLES[name]),
                *("--port", f"{self.ports[name]}"),
            ],
            {
                "LDFI_GRPC_PORT": "off",
                **self.environment,
                **door,
                "LDFI_ADVERTISE_URL": self.url(name),
            },
        )

    def ready(self, name: str) -> None:
        """Wait until it is. Raises Missing, and ExperimentsError where a process has died."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            self.processes.check()
            if self.answers(name):
                return
            time.sleep(0.05)
        raise Missing(f"{name} is not ready after {START_SECONDS:.0f} s")

    def answers(self, name: str) -> bool:
        """Return whether it says that it is ready."""
        try:
            return httpx.get(f"{self.url(name)}/readyz", timeout=2.0, trust_env=False).is_success
        except httpx.HTTPError:
            return False

    def kill(self, name: str) -> None:
        """Kill it with SIGKILL."""
        self.processes.kill(name)
