"""A rolling upgrade of a three-replica store, node by node, with ldfi at the gate.

    python upgrade.py [--strict] [--redis]

Starts everything it needs (ldfi, the store's three replicas, the shop that reads them, users), lets
one campaign find out what the shop survives, and then upgrades one replica after the other:

    gate ▸ open a maintenance window, watched ▸ down ▸ new release up ▸ close the window

With --redis the store is three Redis nodes, a primary and two replicas, and an upgrade is a restart
of the node's server. What users saw before, meanwhile and afterwards is compared at the end.

Ends with 0 when every step went through and no user saw a failure. With --strict the shop needs two
answers of three; then no spare is left while a node is down, and the gate is asked for none.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import httpx

from ldfi.cli.main import app
from ldfi.cli.ports import free_port
from ldfi.cli.processes import Processes

HERE = Path(__file__).parent
REPLICAS = ("store-1", "store-2", "store-3")
STRICT = "--strict" in sys.argv
REDIS = "--redis" in sys.argv
ORDER = (*REPLICAS[1:], REPLICAS[0]) if REDIS else REPLICAS
"""Of Redis the primary comes last."""
AROUND = 5.0
"""Seconds of traffic before and after, to compare with."""
SPARE = "0" if STRICT else "1"
QUICK = (
    *("treatment=0.4", "control=0.4", "settle=1", "follow=0", "apart=0", "admission=all"),
    *("rechecks=0", "min_traffic=50"),
)


def say(text: str) -> None:
    """Tell whoever watches."""
    print(text, flush=True)


@dataclass(frozen=True)
class Seen:
    """What users saw for a while: how many requests failed, and how long all took, sorted (ms)."""

    failures: int
    took: list[float]

    def line(self, name: str) -> str:
        """Say it in one line."""
        p50, p95, p99 = (
            f"{self.took[int(share * (len(self.took) - 1))]:.0f} ms" if self.took else "-"
            for share in (0.5, 0.95, 0.99)
        )
        return f"{name:10} {len(self.took):8} {self.failures:7} {p50:>8} {p95:>8} {p99:>8}"


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

    def known_as(self, replica: str) -> str:
        """Return what traces call a node: the name the shop asks for, or, of Redis on loopback,
        the address."""
        return f"127.0.0.1:{self.ports[replica]}" if REDIS else replica

    def start_replica(self, name: str, release: str) -> None:
        """Start one node of the store."""
        if REDIS:
            primary = [] if name == REPLICAS[0] else [str(self.ports[REPLICAS[0]])]
            node = (str(HERE / "redis_node.py"), str(self.ports[name]), str(self.folder / name))
            self.start(name, *node, *primary)
            self.wait_for_redis(name)
            return
        self.start(name, str(HERE / "replica.py"), name, str(self.ports[name]), release)
        self.wait(name, "/healthz")

    def start_all(self) -> None:
        """Start the service, the store, the shop, the users."""
        serve = ("-m", "ldfi.cli", "serve", "--port", str(self.ports["ldfi"]))
        tokens = ",".join(f"{role}:{token}" for role, token in self.tokens.items())
        self.start(
            "ldfi",
            *(*serve, "--database", str(self.folder / "ldfi.sqlite3")),
            env={"LDFI_TOKENS": tokens, "LDFI_EXPORT_INTERVAL": "0.1", "LDFI_QUIET": "0.4"},
        )
        for name in REPLICAS:
            self.start_replica(name, "release 1")
        if REDIS:
            self.fill()
        self.wait("ldfi", "/readyz")
        self.start(
            "shop",
            *(str(HERE / "shop.py"), str(self.ports["shop"])),
            env={
                "READS": "strict" if STRICT else "",
                "STORE": "redis" if REDIS else "",
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
            *(str(HERE / "users.py"), shop, "40", str(self.folder / "seen")),
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

    def redis(self, name: str) -> Any:
        """Return a client of one Redis node."""
        from redis import Redis

        return Redis(port=self.ports[name], socket_timeout=5, decode_responses=True)

    def wait_for_redis(self, name: str) -> None:
        """Wait until a node answers and, if it is a replica, follows its primary."""
        from redis.exceptions import RedisError

        while True:
            self.processes.check()
            with suppress(RedisError):
                told = self.redis(name).info()
                if not told["loading"] and told.get("master_link_status", "up") == "up":
                    return
            time.sleep(0.1)

    def fill(self) -> None:
        """Put every item into the primary, and wait until the replicas have them."""
        items = {f"item:{n}": json.dumps({"title": f"item {n}", "version": 1}) for n in range(1000)}
        self.redis(REPLICAS[0]).mset(items)
        while any(self.redis(name).dbsize() < len(items) for name in REPLICAS):
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

    def seen(self, since: float, until: float) -> Seen:
        """Return what users saw in that time (Unix seconds)."""
        whole = (self.folder / "seen").read_text().rpartition("\n")[0]
        lines = [line.split() for line in whole.splitlines()]
        mine = [line for line in lines if since <= float(line[0]) < until]
        failures = sum(outcome == "failure" for _, outcome, _ in mine)
        return Seen(failures, sorted(float(took) for _, _, took in mine))


def learn(town: Town) -> None:
    """Run one campaign over sets of up to three failures: what does the shop survive?"""
    settings = [word for each in QUICK for word in ("--set", each)]
    start = ("campaign", "start", "--class", "GET /items/*", "--kind", "error", "--max-size", "3")
    code, _ = town.ldfi(*start, *settings, "--watch", printed=sys.stdout)
    if code != 1:
        raise SystemExit(f"the campaign should have found what the shop cannot survive: {code}")


def allowed(town: Town, replica: str, *wait: str) -> bool:
    """Return whether the gate lets a replica be taken down now."""
    node = town.known_as(replica)
    code, said = town.ldfi("maintenance", "gate", "--down", node, "--spare", SPARE, *wait)
    say(f"{said}\n(exit code {code})")
    return code == 0


def upgrade(town: Town, replica: str, other: str) -> None:
    """Upgrade one replica. Meanwhile nobody may take down ``other``."""
    if not allowed(town, replica, "--wait", "1m"):  # the one before has just come back
        raise SystemExit(f"{replica} must not be taken down now")
    _, said = town.ldfi(
        *("maintenance", "open", "--down", town.known_as(replica), "--for", "15m"),
        *("--reason", "upgrade to release 2", "--json"),
    )
    window = json.loads(said)["id"]
    watch = [sys.executable, "-m", "ldfi.cli", "maintenance", "watch", window]
    watching = subprocess.Popen(watch, stdout=subprocess.PIPE, text=True)
    town.processes.end(replica, 15.0)
    say(f"{replica} is down")
    if allowed(town, other):  # what is down already counts
        raise SystemExit(f"with {replica} down, {other} must not be taken down as well")
    town.start_replica(replica, "release 2")
    told = town.redis(replica).info() if REDIS else town.wait(replica, "/healthz")
    say(f"{replica} is up with {told.get('release', told.get('redis_version'))}")
    town.ldfi("maintenance", "close", window)
    report, _ = watching.communicate(timeout=60)
    say(report.strip())
    if watching.returncode != 0:
        raise SystemExit(f"users suffered while {replica} was upgraded")


def main() -> None:
    """Learn, then upgrade node by node."""
    if REDIS and shutil.which("redis-server") is None:
        raise SystemExit("--redis needs redis-server, and there is none on this machine")
    with (
        tempfile.TemporaryDirectory(prefix="ldfi-upgrade-") as folder,
        Processes(Path(folder)) as processes,
    ):
        town = Town(processes, Path(folder))
        town.start_all()
        learn(town)
        time.sleep(2.0)  # the last requests of the last experiment end
        begin = time.time()
        time.sleep(AROUND)
        first = time.time()
        for place, replica in enumerate(ORDER):
            upgrade(town, replica, other=ORDER[place - 1])
        last = time.time()
        time.sleep(AROUND)
        say(f"{'':10} {'requests':>8} {'failed':>7} {'p50':>8} {'p95':>8} {'p99':>8}")
        say(town.seen(begin, first).line("before"))
        say(town.seen(first, last).line("meanwhile"))
        say(town.seen(last, time.time()).line("afterwards"))
        hurt = town.seen(begin, time.time()).failures
        what = "are restarted" if REDIS else "run release 2"
        say(f"All three {what}; {hurt} requests of users failed meanwhile.")
    raise SystemExit(1 if hurt else 0)


if __name__ == "__main__":
    main()
