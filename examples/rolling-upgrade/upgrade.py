"""A rolling upgrade of a three-replica store, node by node, with ldfi at the gate.

    python upgrade.py [--strict]

Starts everything it needs (ldfi, the store's three replicas, the shop that reads them, users), lets
one campaign find out what the shop survives, and then upgrades one replica after the other:

    gate ▸ open a maintenance window ▸ down ▸ new release up ▸ close the window

Ends with 0 when every step went through and no user saw a failure. With --strict the shop needs two
answers of three; then no spare is left while a node is down, and the gate is asked for none.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, TextIO

import httpx

from ldfi.experiments.cli.main import app
from ldfi.experiments.cli.processes import Processes, free_port

HERE = Path(__file__).parent
REPLICAS = ("store-1", "store-2", "store-3")
STRICT = "--strict" in sys.argv
SPARE = "0" if STRICT else "1"
QUICK = (
    *("treatment=0.4", "control=0.4", "settle=1", "apart=0", "admission=all"),
    *("rechecks=0", "min_traffic=50"),
)


def say(text: str) -> None:
    """Tell whoever watches."""
    print(text, flush=True)


class Town:
    """All processes, and where they listen."""

    def __init__(self, processes: Processes, folder: Path) -> None:
        self.processes = processes
        self.folder = folder
        self.ports = {name: free_port() for name in ("ldfi", "shop", *REPLICAS)}
        self.tokens = {
            role: secrets.token_urlsafe(24) for role in ("operator", "edge", "ingest", "devices")
        }
        self.url = f"http://127.0.0.1:{self.ports['ldfi']}"

    def start(self, name: str, *command: str, env: Mapping[str, str] | None = None) -> None:
        """Start a Python program and wait until it answers."""
        self.processes.start(
            name, [sys.executable, *command], {"PYTHONPATH": str(HERE), **(env or {})}
        )

    def start_replica(self, name: str, release: str) -> None:
        """Start one node of the store."""
        self.start(name, str(HERE / "replica.py"), name, str(self.ports[name]), release)
        self.wait(name, "/healthz")

    def start_all(self) -> None:
        """Start the service, the store, the shop, the users."""
        serve = ("-m", "ldfi.experiments.cli", "serve", "--port", str(self.ports["ldfi"]))
        tokens = ",".join(f"{role}:{token}" for role, token in self.tokens.items())
        self.start(
            "ldfi",
            *(*serve, "--database", str(self.folder / "ldfi.sqlite3")),
            env={"LDFI_TOKENS": tokens, "LDFI_EXPORT_INTERVAL": "0.1", "LDFI_QUIET": "0.4"},
        )
        for name in REPLICAS:
            self.start_replica(name, "release 1")
        self.wait("ldfi", "/readyz")
        self.start(
            "shop",
            *(str(HERE / "shop.py"), str(self.ports["shop"])),
            env={
                "READS": "strict" if STRICT else "",
                "DEMO_HOSTS": json.dumps({n: f"127.0.0.1:{self.ports[n]}" for n in REPLICAS}),
                "FIT_KEYS": f"example:{secrets.token_hex(32)}",
                "LDFI_URL": self.url,
                "LDFI_TOKEN": self.tokens["edge"],
                "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
                "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{self.tokens['ingest']}",
                "OTEL_SEMCONV_STABILITY_OPT_IN": "http",
            },
        )
        self.wait("shop", "/healthz")
        shop = f"http://127.0.0.1:{self.ports['shop']}"
        self.start(
            "users",
            *(str(HERE / "users.py"), shop, "40", str(self.folder / "seen.json")),
            env={"LDFI_URL": self.url, "LDFI_DEVICE_TOKEN": self.tokens["devices"]},
        )

    def wait(self, name: str, path: str) -> dict[str, Any]:
        """Wait until a process answers; return what it says."""
        while True:
            self.processes.check()
            try:
                address = f"http://127.0.0.1:{self.ports[name]}{path}"
                answer = httpx.get(address, trust_env=False)
                if answer.is_success:
                    document: dict[str, Any] = answer.json()
                    return document
            except httpx.HTTPError:
                pass
            time.sleep(0.1)

    def ldfi(self, *words: str, printed: TextIO | None = None) -> tuple[int, str]:
        """Run a command as an operator: its exit code, and what it prints (``printed``: there).

        In this process, for a new one takes a second to start.
        """
        say(f"$ ldfi {' '.join(words)}")
        os.environ |= {"LDFI_URL": self.url, "LDFI_TOKEN": self.tokens["operator"]}
        kept = io.StringIO()
        with redirect_stdout(printed or kept):
            code = app(words, standalone_mode=False)
        return int(code or 0), kept.getvalue().strip()

    def failures(self) -> int:
        """Count the requests of users that have failed so far."""
        seen = json.loads((self.folder / "seen.json").read_text())
        return int(seen.get("failure", 0))


def learn(town: Town) -> None:
    """Run one campaign over sets of up to three failures: what does the shop survive?"""
    settings = [word for each in QUICK for word in ("--set", each)]
    start = ("campaign", "start", "--class", "GET /items/*", "--kind", "error", "--max-size", "3")
    code, _ = town.ldfi(*start, *settings, "--watch", printed=sys.stdout)
    if code != 1:
        raise SystemExit(f"the campaign should have found what the shop cannot survive: {code}")


def allowed(town: Town, replica: str) -> bool:
    """Tell whether the gate lets a replica be taken down now."""
    code, said = town.ldfi("maintenance", "gate", "--down", replica, "--spare", SPARE)
    say(f"{said}\n(exit code {code})")
    return code == 0


def upgrade(town: Town, replica: str, other: str) -> None:
    """Upgrade one replica. Meanwhile nobody may take down ``other``."""
    if not allowed(town, replica):
        raise SystemExit(f"{replica} must not be taken down now")
    _, said = town.ldfi(
        *("maintenance", "open", "--down", replica, "--for", "15m"),
        *("--reason", "upgrade to release 2", "--json"),
    )
    window = json.loads(said)["id"]
    town.processes.end(replica, 5.0)
    say(f"{replica} is down")
    if allowed(town, other):  # what is down already counts
        raise SystemExit(f"with {replica} down, {other} must not be taken down as well")
    town.start_replica(replica, "release 2")
    say(f"{replica} is up with {town.wait(replica, '/healthz')['release']}")
    town.ldfi("maintenance", "close", window)


def main() -> None:
    """Learn, then upgrade node by node."""
    with (
        tempfile.TemporaryDirectory(prefix="ldfi-upgrade-") as folder,
        Processes(Path(folder)) as processes,
    ):
        town = Town(processes, Path(folder))
        town.start_all()
        learn(town)
        time.sleep(2.0)  # the last requests of the last experiment end
        before = town.failures()
        for place, replica in enumerate(REPLICAS):
            upgrade(town, replica, other=REPLICAS[place - 1])
        hurt = town.failures() - before
        say(f"All three run release 2; {hurt} requests of users failed meanwhile.")
    raise SystemExit(1 if hurt else 0)


if __name__ == "__main__":
    main()
