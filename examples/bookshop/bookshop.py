"""The bookshop: ten services in processes of their own, and where each finds the others.

``python bookshop.py`` runs them until it is interrupted, in this environment: ``ldfi explore env``.
Two of them keep something in PostgreSQL and Redis, where these are installed, and do without where
they are not; in CI they have to be.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path

from ldfi.explore.external.services import Service, Services

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
FIRST_PORT = int(os.environ.get("BOOKSHOP_PORT", "8700"))
NAMES = (
    *("front", "catalogue", "stock", "warehouse", "prices"),
    *("pricecache", "listprices", "reviews", "recommendations", "shipping"),
)
STORES = {
    "postgres": "postgresql://ldfi@127.0.0.1:{}/postgres?connect_timeout=5",
    "redis": "redis://127.0.0.1:{}",
}
"""Where whoever keeps something there finds it, at a port."""
KEPT = {
    "stock": ("postgres", "stock.py"),
    "recommendations": ("redis", "recommendations.py"),
}
"""Who keeps something in a store, and the program that does."""
PLANTED = (
    {"catalogue"},
    {"shipping"},
    {"stock", "warehouse"},
    {"prices", "pricecache", "listprices"},
)
"""Services that break the page when all of them are down, and no smaller set does."""
BEHIND = {"postgres": [{"postgres", "warehouse"}], "redis": []}
"""The same with a store among them, where that store is there."""
MASKED = {
    "": {"recommendations": "status:500"},
    "postgres": {},
    "redis": {"redis": "redis:readonly"},
}
"""What breaks it when it fails in this one way, by the store that has to be there for that."""


def lack(store: str) -> str:
    """Return why there is no such store here; empty where there is one."""
    modules = {"postgres": "psycopg", "redis": "redis"}
    for module in (modules[store], f"opentelemetry.instrumentation.{modules[store]}"):
        if find_spec(module) is None:
            return f"the module {module} is not installed"
    if store == "redis":
        return "" if shutil.which("redis-server") else "redis-server is not installed"
    if str(CHECKOUT) not in sys.path:
        sys.path.append(str(CHECKOUT))  # `deploy` is a part of it, and of no wheel
    from deploy.stack.missing import Missing
    from deploy.stack.postgresql import installed

    try:
        installed()
    except Missing as error:
        return str(error)
    return ""


def stores() -> list[str]:
    """List the stores that are there. Raises RuntimeError for any other in CI."""
    lacking = {store: why for store in STORES if (why := lack(store))}
    if lacking and os.environ.get("CI"):
        raise RuntimeError(f"CI has to run the bookshop with all its stores: {lacking}")
    for store, why in lacking.items():
        print(f"the bookshop does without {store}: {why}", file=sys.stderr, flush=True)
    return [store for store in STORES if store not in lacking]


def planted(there: Collection[str]) -> list[set[str]]:
    """List the weaknesses that are planted with these stores."""
    return [*PLANTED, *(each for store in there for each in BEHIND[store])]


def masked(there: Collection[str]) -> dict[str, str]:
    """Find what breaks the page in one way of failing, and in which, with these stores."""
    return {name: kind for store in ("", *there) for name, kind in MASKED[store].items()}


def services(first_port: int = FIRST_PORT, there: Collection[str] | None = None) -> list[Service]:
    """Return all services, and the stores ``there`` (by default all that are here); the page is the
    first."""
    there = stores() if there is None else there
    ports = {name: first_port + i for i, name in enumerate((*NAMES, *STORES))}
    places = {name.upper(): f"http://127.0.0.1:{ports[name]}" for name in NAMES}
    places |= {store.upper(): STORES[store].format(ports[store]) for store in there}
    return [
        *(service(name, program(name, there), ports[name], places) for name in NAMES),
        *(store_at(store, ports[store]) for store in there),
    ]


def program(name: str, there: Collection[str]) -> str:
    """Name the file that a service is started from."""
    store, file = KEPT.get(name, ("", ""))
    if store in there:
        return file
    return {"front": "front.py", "reviews": "reviews.mjs"}.get(name, "shelf.py")


def service(name: str, file: str, port: int, places: dict[str, str]) -> Service:
    """Declare one, and what it is made of: while that stays, what was survived is not run again."""
    if file.endswith(".mjs"):
        command, code = ["node", file], [file, "tracing.mjs", "../../../ldfi/fit/js"]
    else:
        command = [sys.executable, file]
        shelves = [] if file in {"front.py", "shelf.py"} else ["shelf.py"]
        code = [file, *shelves, "telemetry.py", "../requirements.txt"]
    return Service(name, command, port, "/health", places, HERE / "services", code)


def store_at(store: str, port: int) -> Service:
    """Declare a store. An open port is enough."""
    command, code = ["redis-server", "redis.conf", "--port", str(port)], ["redis.conf"]
    if store == "postgres":
        command = [sys.executable, "postgres.py"]
        code = ["postgres.py", "../../../deploy/stack/postgresql.py"]
    return Service(store, command, port, folder=HERE / "services", code=code)


def main() -> None:
    running = Services({}, HERE / ".ldfi" / "logs", seconds=120)
    try:
        every = services()
        running.start(*every)
        print(f"the page: {every[0].url}/books/17", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    finally:
        running.close()


if __name__ == "__main__":
    main()
