"""The polyglot shop: services in Python, Go and Node in processes of their own, proxies between
some of them, and where each finds the others.

``python polyglot.py`` builds what is to be built and runs them until it is interrupted, in this
environment: ``ldfi explore env``. Envoy and PostgreSQL are used where they are installed, and done
without where they are not; in CI they have to be. Go and Node it needs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import httpx

from ldfi.explore.external.services import Service, Services

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
sys.path.append(str(HERE.parent))  # together.py
KEPT = HERE / ".ldfi"
BINARIES = KEPT / "bin"
FIRST_PORT = int(os.environ.get("POLYGLOT_PORT", "8740"))
PYTHON = ("front", "catalogue")
SHELVES = ("prices", "covers", "placeholder", "ratings", "warehouse")
NAMES = ("front", "shop", "catalogue", "reviews", *SHELVES)
PARTS = ("postgres", "envoy")
"""What it can do without."""
BEFORE = {"prices": "envoy", "covers": "reverse", "placeholder": "reverse"}
"""Services whose callers reach them through a proxy, and know nothing of fit."""
LISTENING = (*NAMES, "postgres", "processor", *(f"before-{name}" for name in BEFORE))
"""Who listens, in the order of their ports."""
PATH = "/books/17"

PLANTED = (
    {"shop"},
    {"catalogue"},
    {"reviews"},
    {"ratings"},
    {"covers", "placeholder"},
)
"""Services that break the page when all of them are down, and no smaller set does."""
WITH = {"envoy": {"prices"}, "postgres": {"postgres", "warehouse"}}
"""The same where that part is there."""


def missing() -> str:
    """Return what without which nothing of it runs; empty where all of that is there."""
    without = [name for name in ("go", "node", "npm") if shutil.which(name) is None]
    return f"the polyglot shop needs {' and '.join(without)}" if without else ""


def lack(part: str) -> str:
    """Return why there is no such part here; empty where there is one."""
    if part == "envoy":
        return "" if envoy() else "Envoy is not installed; pip install 'ldfi[mesh]' brings it"
    if str(CHECKOUT) not in sys.path:
        sys.path.append(str(CHECKOUT))  # `deploy` is a part of it, and of no wheel
    from deploy.stack.missing import Missing
    from deploy.stack.postgresql import installed

    try:
        installed()
    except Missing as error:
        return str(error)
    return ""


def envoy() -> str | None:
    """Find Envoy, beside this Python or on the path."""
    beside = Path(sys.executable).with_name("envoy")
    return str(beside) if beside.exists() else shutil.which("envoy")


def parts() -> list[str]:
    """List the parts that are there. Raises RuntimeError for any other in CI."""
    lacking = {part: why for part in PARTS if (why := lack(part))}
    if lacking and os.environ.get("CI"):
        raise RuntimeError(f"CI has to run the polyglot shop with all its parts: {lacking}")
    for part, why in lacking.items():
        print(f"the polyglot shop does without {part}: {why}", file=sys.stderr, flush=True)
    return [part for part in PARTS if part not in lacking]


def planted(there: Collection[str]) -> list[set[str]]:
    """List the weaknesses that are planted with these parts."""
    return [*PLANTED, *(WITH[part] for part in there)]


def build() -> None:
    """Build what is written in Go, and install what the service in Node needs.

    Raises CalledProcessError, and FileNotFoundError where Go or npm is not there.
    """
    BINARIES.mkdir(parents=True, exist_ok=True)
    here = os.environ | {"GOFLAGS": "-buildvcs=false"}
    for folder, package in (
        (HERE / "go", "./..."),
        (CHECKOUT / "fit/go/proxy", "./cmd/ldfi-proxy"),
    ):
        words = ["go", "build", "-o", f"{BINARIES}/", package]
        subprocess.run(words, cwd=folder, env=here, check=True)
    words = ["npm", "ci", "--ignore-scripts", "--prefer-offline", "--silent"]
    subprocess.run(words, cwd=HERE / "node", check=True)


def services(first_port: int = FIRST_PORT, there: Collection[str] | None = None) -> list[Service]:
    """Return all services, with the parts ``there`` (by default all that are here); the page is the
    first."""
    there = parts() if there is None else there
    ports = {name: first_port + i for i, name in enumerate(LISTENING)}
    places = {name.upper(): f"http://127.0.0.1:{ports[entrance(name)]}" for name in NAMES}
    if "postgres" in there:
        dsn = "postgresql://ldfi@127.0.0.1:{}/postgres?connect_timeout=2"
        places["POSTGRES"] = dsn.format(ports["postgres"])
    if "envoy" not in there:
        del places["PRICES"]
    return [
        *(Service(name, command(name), ports[name], "/health", places, HERE) for name in NAMES),
        reverse(ports),
        *(store(ports) if "postgres" in there else ()),
        *(mesh(ports) if "envoy" in there else ()),
    ]


def entrance(name: str) -> str:
    """Name who listens where the callers of a service look for it."""
    return f"before-{name}" if name in BEFORE else name


def command(name: str) -> list[str]:
    """Return how a service is started."""
    if name in PYTHON:
        return [sys.executable, f"python/{name}.py"]
    if name == "reviews":
        registered = ("ldfi-fit/register", "./tracing.js")
        return [
            "sh",
            "-c",
            f"cd node && exec node {' '.join(f'--import {r}' for r in registered)} reviews.js",
        ]
    return [str(BINARIES / ("shelf" if name in SHELVES else name))]


def reverse(ports: dict[str, int]) -> Service:
    """Declare the proxy in front of the covers and what does for them: two upstreams, one table."""
    behind = [name for name, proxy in BEFORE.items() if proxy == "reverse"]
    table: list[dict[str, Any]] = [
        {
            "listen": f"127.0.0.1:{ports[entrance(name)]}",
            "upstream": f"http://127.0.0.1:{ports[name]}",
            "caller": "catalogue",
        }
        for name in behind
    ]
    written = KEPT / f"routes-{ports['front']}.json"
    KEPT.mkdir(exist_ok=True)
    written.write_text(json.dumps(table), encoding="utf-8")
    words = [str(BINARIES / "ldfi-proxy"), "reverse", "--table", str(written)]
    return Service("reverse", words, ports[entrance(behind[-1])])


def store(ports: dict[str, int]) -> list[Service]:
    """Declare the bookshop's PostgreSQL. An open port is enough."""
    words = [sys.executable, "../bookshop/services/postgres.py"]
    return [Service("postgres", words, ports["postgres"], folder=HERE)]


def mesh(ports: dict[str, int]) -> list[Service]:
    """Declare the processor, and Envoy in front of the prices."""
    listen = f"127.0.0.1:{ports['processor']}"
    words = [str(BINARIES / "ldfi-proxy"), "envoy", "--listen", listen]
    told = {
        "CALLER": "catalogue",
        "UPSTREAM": str(ports["prices"]),
        "PROCESSOR": str(ports["processor"]),
    }
    starting = [sys.executable, "python/envoy.py", envoy() or "envoy"]
    return [
        Service("processor", words, ports["processor"]),
        Service("envoy", starting, ports[entrance("prices")], environment=told, folder=HERE),
    ]


def shows(every: Sequence[Service]) -> bool:
    """Return whether the page is there."""
    return httpx.get(f"{every[0].url}{PATH}", trust_env=False, timeout=30).is_success


def broken(every: Sequence[Service], faults: Iterable[str]) -> frozenset[str]:
    """Name the services that faults are about, by the addresses that their callers dial."""
    first = every[0].port
    names = {str(service.port): service.name for service in every}
    names |= {str(first + LISTENING.index(entrance(name))): name for name in BEFORE}
    peers = (fault.rpartition(":")[2].partition("/")[0] for fault in faults)
    return frozenset(names.get(peer, peer) for peer in peers)


def main() -> None:
    from together import until_interrupted

    build()
    every = services()
    running = Services({}, KEPT / "logs", seconds=120)
    until_interrupted(running, every, f"the page: {every[0].url}{PATH}")


if __name__ == "__main__":
    main()
