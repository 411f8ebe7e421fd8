"""compose.yaml, brought up by podman-compose: its containers, their health, their ends.

Where systemd does not rule, nobody asks containers for their health, and Debian 12's podman cannot
wait for it: services start in order, at once, and have to bear that what they depend on is not
there yet. :meth:`Composed.ready` asks each for its health itself.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

import yaml

from deploy.containers.engine import Engine
from deploy.containers.standins import LEFT_OUT, ROOT
from deploy.stack.missing import Missing

SECRETS: Final = ROOT / "build" / "containers" / "env"
TOKEN: Final = SECRETS.with_name("metrics_token")
_FILES: Final = ("compose.yaml", "deploy/containers/overlay.yaml")
_SERVICE: Final = "com.docker.compose.service"


@dataclass(frozen=True, slots=True)
class Container:
    """``pid``: of its first process, 0 where none runs. ``asked``: it has a health check."""

    name: str
    service: str
    pid: int
    asked: bool


@dataclass(frozen=True, slots=True)
class Composed:
    """The services of compose.yaml but Grafana, with secrets of their own."""

    engine: Engine

    @property
    def services(self) -> list[str]:
        """Name them."""
        found = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
        return [name for name in found if name not in LEFT_OUT]

    def up(self) -> None:
        """Create and start every container. Raises Missing with what podman-compose says."""
        TOKEN.parent.mkdir(parents=True, exist_ok=True)
        TOKEN.write_text(secrets()["LDFI_METRICS_TOKEN"])
        TOKEN.chmod(0o644)  # Prometheus reads it as nobody
        self._compose("up", "--detach", "--no-build", *self.services)
        there = {each.service for each in self.containers()}
        if lacking := set(self.services) - there:
            raise Missing(f"not brought up: {', '.join(sorted(lacking))}")

    def down(self, *, volumes: bool = False) -> None:
        """Stop and remove them, and with ``volumes`` all that they have kept."""
        self._compose("down", *(["--volumes"] if volumes else []))

    def containers(self) -> list[Container]:
        """List those that there are, running or not."""
        names = self.engine.do("ps", "--all", "--format", "{{.Names}}").split()
        found = json.loads(self.engine.do("inspect", *names)) if names else []
        return sorted(map(_container, found), key=lambda each: each.name)

    def ill(self) -> Iterator[str]:
        """Name those that do not run, or that say they are not well."""
        for each in self.containers():
            if not each.pid or (each.asked and not self._well(each.name)):
                yield each.name

    def ready(self, within: float) -> float:
        """Wait until all are well; the seconds that it took. Raises Missing."""
        began = time.monotonic()
        while ill := list(self.ill()):
            if time.monotonic() - began > within:
                said = "\n".join(f"{name}: {self.log(name)}" for name in ill)
                raise Missing(f"not well after {within:.0f} s: {said}")
            time.sleep(0.5)
        return time.monotonic() - began

    def kill(self, service: str) -> Container:
        """SIGKILL to one of its containers, as the kernel would: not by podman, which would then
        leave it dead. What it was."""
        victim = next(each for each in self.containers() if each.service == service and each.pid)
        os.kill(victim.pid, signal.SIGKILL)
        return victim

    def replaced(self, victim: Container, within: float) -> float:
        """Wait until it runs again, and well; the seconds that it took. Raises Missing."""
        began = time.monotonic()
        while time.monotonic() - began < within:
            (now,) = [each for each in self.containers() if each.name == victim.name]
            if now.pid not in (0, victim.pid) and (not now.asked or self._well(now.name)):
                return time.monotonic() - began
            time.sleep(0.5)
        raise Missing(
            f"{victim.name} is not well again after {within:.0f} s: {self.log(victim.name)}"
        )

    def log(self, name: str) -> str:
        """Read the last lines that it has said."""
        done = subprocess.run(
            ["podman", "logs", "--tail", "10", name],
            env=dict(self.engine.environment),
            capture_output=True,
            text=True,
            check=False,
        )
        return (done.stdout + done.stderr)[-2000:]

    def _well(self, name: str) -> bool:
        asked = subprocess.run(
            ["podman", "healthcheck", "run", name],
            env=dict(self.engine.environment),
            capture_output=True,
            check=False,
        )
        return asked.returncode == 0

    def _compose(self, *words: str) -> None:
        files = [word for each in _FILES for word in ("--file", each)]
        program = [sys.executable, "-m", "podman_compose", "--in-pod", "false"]
        done = subprocess.run(
            [*program, "--env-file", str(SECRETS), *files, *words],
            cwd=ROOT,
            env={**self.engine.environment, **secrets()},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Missing(f"podman-compose {words[0]} failed: {done.stderr[-3000:]}")


def composed(engine: Engine) -> Composed:
    """Make podman-compose ready. Raises Missing where it is not installed."""
    if find_spec("podman_compose") is None:
        raise Missing("no podman-compose: pip install 'ldfi[dev]'")
    return Composed(engine)


def secrets() -> Mapping[str, str]:
    """Read them; they are made where there are none."""
    if not SECRETS.exists():
        SECRETS.parent.mkdir(parents=True, exist_ok=True)
        made = subprocess.check_output(["sh", str(ROOT / "deploy" / "secrets.sh")], text=True)
        SECRETS.write_text(made)
    lines = SECRETS.read_text().splitlines()
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    return {name: value for name, _, value in pairs}


def _container(found: Mapping[str, Any]) -> Container:
    test = (found["Config"].get("Healthcheck") or {}).get("Test") or ["NONE"]
    return Container(
        found["Name"],
        found["Config"]["Labels"][_SERVICE],
        int(found["State"]["Pid"]),
        test[0] != "NONE",
    )
