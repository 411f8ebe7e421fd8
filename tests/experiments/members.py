"""Processes of the service, each in a role, over one database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from ldfi.cli.ports import free_port
from ldfi.cli.processes import ATTACHED
from ldfi.experiments.cluster.tokens import Role
from tests.kit.frozen import freeze
from tests.kit.service import GIVEN, bearer

PATIENCE = 150.0


@dataclass
class Member:
    """``ldfi serve --role ROLE``, ended without a word or politely."""

    role: str
    folder: Path
    options: dict[str, str]
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def _log(self) -> Path:
        return self.folder / f"{self.role}-{self.port}.log"

    def start(self) -> None:
        tokens = ",".join(f"{role}:{token}" for role, token in GIVEN.items())
        options = {"LDFI_TOKENS": tokens, "LDFI_MEMBER_KEY": "the same in all of them"}
        options |= {"LDFI_LEASE": "3", "LDFI_PORT": f"{self.port}", "LDFI_GRPC_PORT": "off"}
        command = [sys.executable, "-m", "ldfi.cli", "serve", "--role", self.role]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **options, ATTACHED: "1", **self.options},
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        return self._end(signal.SIGTERM)

    def freeze(self) -> None:
        assert self._process is not None
        freeze(self._process)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def ended(self) -> int | None:
        """The exit status, when it has ended."""
        assert self._process is not None
        return self._process.poll()

    def state(self) -> str:
        """What it says of itself: ready, standby, not-ready, or nothing."""
        with suppress(httpx.HTTPError):
            answer = httpx.get(f"{self.url}/readyz", timeout=2, trust_env=False).json()
            return str(answer["status"])
        return ""

    def ready(self) -> int:
        """The status of its readiness; 0 when it does not answer."""
        with suppress(httpx.HTTPError):
            return httpx.get(f"{self.url}/readyz", timeout=2, trust_env=False).status_code
        return 0

    def metrics(self) -> str:
        return self.ask("GET", "/metrics", "metrics").text

    def ask(self, method: str, path: str, role: Role = "operator", **more: Any) -> httpx.Response:
        headers = bearer(GIVEN[role])
        return httpx.request(
            method, self.url + path, headers=headers, timeout=30, trust_env=False, **more
        )

    def _end(self, how: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(how)
        process.send_signal(signal.SIGCONT)
        status = process.wait(30)
        assert process.stdin is not None
        process.stdin.close()
        return status


def until(holds: Any, patience: float = PATIENCE) -> float:
    """Wait until this holds; the seconds that took."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() < began + patience, "it did not come to that in time"
        time.sleep(0.02)
    return time.monotonic() - began
