"""The service in a process of its own, which is killed without a word and started again."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from ldfi.cli.ports import free_port
from ldfi.cli.processes import ATTACHED

START_SECONDS = 180.0
LEASE = 3.0
TOKENS = {role: f"{role}-of-the-crash-test" for role in ("operator", "edge", "ingest", "devices")}


@dataclass
class Service:
    """``ldfi serve`` on one database and one port, so that the edges find it again.

    ``hour``: the budget of members in any hour. ``extra``: more of its variables.
    """

    database: str
    folder: Path
    hour: int = 1_000_000
    quiet: float = 0.1
    extra: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    started_in: list[float] = field(default_factory=list)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Of its process, which must be running."""
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        """Return the log of all its lives."""
        return (self.folder / "service.log").read_text()

    def start(self) -> None:
        """Start it; :meth:`ready` waits for it."""
        options = {
            "LDFI_TOKENS": ",".join(f"{role}:{token}" for role, token in TOKENS.items()),
            "LDFI_MEMBER_KEY": "the same after every crash",
            "LDFI_QUIET": f"{self.quiet}",
            "LDFI_LEASE": f"{LEASE}",
            "LDFI_MEMBERS_PER_HOUR": f"{self.hour}",
            "LDFI_MEMBERS_PER_DAY": f"{2 * self.hour}",
            "LDFI_GRPC_PORT": "off",
            ATTACHED: "1",  # it ends when we do, however that comes about
            **self.extra,
        }
        serve = [sys.executable, "-m", "ldfi.cli", "serve"]
        with (self.folder / "service.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*serve, "--port", str(self.port), "--database", self.database],
                env={**os.environ, **options},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )

    def ready(self) -> float:
        """Wait until it answers; return the seconds that took."""
        began = time.monotonic()
        while time.monotonic() < began + START_SECONDS:
            self.check()
            with suppress(httpx.HTTPError):
                if httpx.get(f"{self.url}/readyz", timeout=2.0, trust_env=False).is_success:
                    self.started_in.append(time.monotonic() - began)
                    return self.started_in[-1]
            time.sleep(0.02)
        raise AssertionError(f"the service is not up after {START_SECONDS:.0f} s:\n{self.log}")

    def check(self) -> None:
        """Fail where it has ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            status = self._process.returncode
            raise AssertionError(f"the service ended by itself, status {status}:\n{self.log}")

    def kill(self) -> float:
        """Kill it with SIGKILL; return when it was surely dead, Unix seconds."""
        self.check()
        return self.stop()

    def stop(self) -> float:
        """Kill it whether it runs or not; return when, Unix seconds."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process = None
        return time.time()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask its API as an operator."""
        headers = {"Authorization": f"Bearer {TOKENS['operator']}"}
        url = f"{self.url}/api/v1{path}"
        answer = httpx.request(
            method, url, json=body, headers=headers, timeout=30.0, trust_env=False
        )
        answer.raise_for_status()
        return answer.json()
