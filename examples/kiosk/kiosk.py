"""The kiosk: nine services in processes of their own, and which kinds of failure each set of them
can have that takes the page away.

``python kiosk.py`` runs them until it is interrupted, in this environment: ``ldfi explore env``.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from ldfi.explore.external.services import Service, Services

HERE = Path(__file__).resolve().parent
FIRST_PORT = int(os.environ.get("KIOSK_PORT", "8720"))
NAMES = (
    *("front", "catalogue", "shelves", "cellar", "prices"),
    *("pricelist", "offers", "recommended", "reviews"),
)
PATIENCE = {"front": 2.5, "catalogue": 0.8}
"""Seconds. The catalogue asks twice, and whoever asks it waits for longer."""

EXCEPTIONS = frozenset({"refused", "reset", "timeout", "truncated"})
STATUSES = frozenset({"status:404", "status:500", "status:503"})
BODIES = frozenset({"empty", "corrupt"})
EVERY = EXCEPTIONS | STATUSES | BODIES
PLANTED = (
    {"catalogue": EVERY},
    {"prices": STATUSES | BODIES},
    {"prices": EXCEPTIONS, "pricelist": EVERY},
    {"offers": EVERY - {"status:500"}},
    {"recommended": frozenset({"status:500"})},
    {"reviews": frozenset({"empty"})},
    {"shelves": EVERY, "cellar": EXCEPTIONS | BODIES},
)
"""Services that break the page when each of them fails in one of these ways."""


def services(first_port: int = FIRST_PORT) -> list[Service]:
    """Return all services; the page is the first."""
    ports = {name: first_port + i for i, name in enumerate(NAMES)}
    places = {name.upper(): f"http://127.0.0.1:{port}" for name, port in ports.items()}
    return [
        Service(name, command(name), ports[name], "/health", told(name, places), HERE / "services")
        for name in NAMES
    ]


def command(name: str) -> list[str]:
    return [sys.executable, f"{name if name in PATIENCE else 'shelf'}.py"]


def told(name: str, places: dict[str, str]) -> dict[str, str]:
    return places | {"PATIENCE": str(PATIENCE[name])} if name in PATIENCE else {}


def main() -> None:
    running = Services({}, HERE / ".ldfi" / "logs", seconds=120)
    try:
        running.start(*services())
        print(f"the page: {services()[0].url}/", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    finally:
        running.close()


if __name__ == "__main__":
    main()
