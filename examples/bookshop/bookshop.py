"""The bookshop: ten services in processes of their own, and where each finds the others.

``python bookshop.py`` runs them until it is interrupted, in this environment: ``ldfi explore env``.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from ldfi.experiments.elsewhere.services import Service, Services

HERE = Path(__file__).resolve().parent
FIRST_PORT = int(os.environ.get("BOOKSHOP_PORT", "8700"))
NAMES = (
    *("front", "catalogue", "stock", "warehouse", "prices"),
    *("pricecache", "listprices", "reviews", "recommendations", "shipping"),
)
PLANTED = (
    {"catalogue"},
    {"shipping"},
    {"stock", "warehouse"},
    {"prices", "pricecache", "listprices"},
)
"""Services that break the page when all of them are down, and no smaller set does."""


def services(first_port: int = FIRST_PORT) -> list[Service]:
    """All of them; the page is the first."""
    ports = {name: first_port + i for i, name in enumerate(NAMES)}
    places = {name.upper(): f"http://127.0.0.1:{port}" for name, port in ports.items()}
    return [
        Service(name, command(name), ports[name], "/health", places, HERE / "services", code(name))
        for name in NAMES
    ]


def code(name: str) -> list[str]:
    """List what it is made of: while that stays, what was survived is not run again."""
    if name == "reviews":
        return ["reviews.mjs", "tracing.mjs", "../../../ldfi/fit/js"]
    return [command(name)[-1], "telemetry.py", "../requirements.txt"]


def command(name: str) -> list[str]:
    if name == "reviews":
        return ["node", "reviews.mjs"]
    return [sys.executable, "front.py" if name == "front" else "shelf.py"]


def main() -> None:
    running = Services({}, HERE / ".ldfi" / "logs", seconds=120)
    try:
        running.start(*services())
        print(f"the page: {services()[0].url}/books/17", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    finally:
        running.close()


if __name__ == "__main__":
    main()
