"""Starting services for a test: with keys and endpoint in their environment, logs kept."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ldfi.error_words import system
from ldfi.errors import Invalid
from ldfi.explore.external.code import Unmapped, code_digest

_POLL: Final = 0.05
_GRACE: Final = 3.0
_TAIL: Final = 20
"""Lines of a log that are shown where a service does not come up."""


class ServiceFailed(Invalid):
    """Raised for a service that does not come up; the message shows the end of its log."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service to be started: ``name`` as its spans have it, and the ``port`` it listens on.

    ``health``: a path that answers below 500 when it is ready; empty where an open port is enough.
    ``environment``: what it needs besides; ``folder``: where it is started. ``code``: all that it
    is made of, as files and folders (seen from ``folder``) or digests of images; with that, runs
    that were survived need not be made again until it changes.
    """

    name: str
    command: Sequence[str]
    port: int
    health: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: str | Path = "."
    code: Sequence[str | Path] = ()

    @property
    def url(self) -> str:
        """Return where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def digest(self) -> str:
        """Hash its code and how it is started. Raises Unmapped."""
        if not self.code:
            raise Unmapped("it was declared without code=[...]")
        started = json.dumps([*self.command, self.port, self.health, dict(self.environment)])
        whole = f"{started}\n{code_digest(self.code, Path(self.folder))}"
        return hashlib.sha256(whole.encode()).hexdigest()


class Services:
    """Services started by us, and those found running.

    ``environment``: what every service is told. ``logs``: the folder of their logs. ``names``: gets
    the name of every service, by its address. ``seconds``: how long one may take to come up.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        logs: Path,
        names: dict[str, str] | None = None,
        seconds: float = 30.0,
    ) -> None:
        self.environment = dict(environment)
        self.logs = logs
        self.names: dict[str, str] = {} if names is None else names
        self.seconds = seconds
        self.found: list[Service] = []
        """Those that ran already, and are used as they are."""
        self.digests: dict[str, str] = {}
        """What the services that were started are made of, by their names."""
        self.unmapped: dict[str, str] = {}
        """Why that is not known of others."""
        self._started: list[tuple[Service, subprocess.Popen[bytes]]] = []

    def start(self, *services: Service) -> None:
        """Start services, all at once, and wait until each is ready. What answers at the port of
        one is used as it is. Raises ServiceFailed."""
        self._started = [each for each in self._started if each[1].poll() is None]
        launched = []
        for service in services:
            self.names[f"127.0.0.1:{service.port}"] = service.name
            running = _listens(service.port)
            if why := self._unmappable(service, running=running):
                self.unmapped[service.name] = why
            if running:
                self.found.append(service)
            else:
                launched.append((service, self._launched(service)))
                self._started.append(launched[-1])
        until = time.monotonic() + self.seconds
        for service, process in launched:
            self._await(service, process, until)

    def close(self) -> None:
        """Stop the services that were started; those that ran before go on."""
        for _, process in self._started:
            _signalled(process, signal.SIGTERM)
        for _, process in self._started:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)
            _signalled(process, signal.SIGKILL)
            process.wait(_GRACE)
        self._started.clear()

    def forget_logs(self) -> None:
        """Remove the logs of the services that were started."""
        for log in self.logs.glob("*.log"):
            log.unlink(missing_ok=True)

    def process(self, name: str) -> subprocess.Popen[bytes]:
        """Return the process of a service that was started, for a test that kills it. Raises
        KeyError."""
        return {service.name: process for service, process in self._started}[name]

    def _unmappable(self, service: Service, *, running: bool) -> str:
        """Learn what a service is made of, before it is started; say why that is not known."""
        ours = any(started == service for started, _ in self._started)
        if running and not ours:
            return "it ran already, nobody knows with what code"
        try:
            digest = service.digest()
        except Unmapped as error:
            return str(error)
        same = self.digests.setdefault(service.name, digest) == digest
        return "" if same else "its code has changed while the tests ran"

    def _launched(self, service: Service) -> subprocess.Popen[bytes]:
        self.logs.mkdir(parents=True, exist_ok=True)
        told = {"OTEL_SERVICE_NAME": service.name, "PORT": str(service.port)}
        with self._log(service).open("wb") as log:
            try:
                return subprocess.Popen(  # noqa: S603 - the project's own services
                    list(service.command),
                    cwd=service.folder,
                    env=os.environ | self.environment | told | dict(service.environment),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                raise ServiceFailed(f"{service.name} cannot be started: {system(error)}") from error

    def _await(self, service: Service, process: subprocess.Popen[Any], until: float) -> None:
        while not _ready(service):
            if process.poll() is not None:
                raise ServiceFailed(
                    f"{service.name} ended with code {process.returncode}:\n{self._tail(service)}"
                )
            if time.monotonic() > until:
                raise ServiceFailed(
                    f"{service.name} does not answer at {service.url}{service.health} after"
                    f" {self.seconds:g} s:\n{self._tail(service)}"
                )
            time.sleep(_POLL)

    def _log(self, service: Service) -> Path:
        return self.logs / f"{service.name}.log"

    def _tail(self, service: Service) -> str:
        lines = self._log(service).read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-_TAIL:])


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _ready(service: Service) -> bool:
    if not service.health:
        return _listens(service.port)
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=2.0)
    try:
        connection.request("GET", service.health)
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _signalled(process: subprocess.Popen[bytes], which: signal.Signals) -> None:
    """Signal a service and all that it has started."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, which)
