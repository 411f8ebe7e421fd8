"""What the examples that run a campaign on real processes share: ports, the service that watches,
visitors, one campaign to its end, and killing for real.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ldfi.cli.client import Client
from ldfi.explore.external import environment
from ldfi.explore.external.services import Service, Services

LIMIT_SECONDS: Final = 600.0

Names = frozenset[str]
"""Of services that fail together."""
Say = Callable[[str], None]


class Visitors:
    """So many at a time until the block is left, each with a next request ``apart`` seconds after
    the last one was answered. ``visit`` is called by all of them, with the request's number."""

    def __init__(self, visit: Callable[[int], object], many: int, apart: float) -> None:
        self._visit = visit
        self._many, self._apart = many, apart
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._go_on, args=(i,)) for i in range(many)]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _go_on(self, first: int) -> None:
        for number in itertools.count(first, self._many):
            self._visit(number)
            if self._over.wait(self._apart):
                return


def until_interrupted(running: Services, every: Sequence[Service], says: str) -> None:
    """Start services, say what there is to see, and stop them when somebody wants that."""
    try:
        running.start(*every)
        print(says, flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    finally:
        running.close()


def watching(port: int, folder: Path, tokens: str, told: Mapping[str, str]) -> Service:
    """Declare the service that runs the campaign; ``told``: what it is told besides."""
    words = [sys.executable, "-m", "ldfi.cli", "serve", "--port", str(port)]
    words += ["--database", str(folder / "ldfi.sqlite3")]
    all_told = {
        "LDFI_TOKENS": tokens,
        "LDFI_EXPORT_INTERVAL": str(environment.AT_ONCE),
        "LDFI_QUIET": "0.5",
        "LDFI_MEMBERS_PER_HOUR": "100000",
        "LDFI_MEMBERS_PER_DAY": "100000",
        "OTEL_SDK_DISABLED": "true",  # requests to this service are none of the example's
    }
    return Service("ldfi", words, port, "/readyz", all_told | dict(told))


def explored(client: Client, settings: Mapping[str, Any], say: Say) -> dict[str, Any]:
    """Run one campaign to its end. Raises TimeoutError."""
    campaign: dict[str, Any] = client.post("/campaigns", dict(settings))
    end, said = time.monotonic() + LIMIT_SECONDS, set[str]()
    while campaign["state"] == "running":
        if time.monotonic() > end:
            raise TimeoutError(f"the campaign is not done after {LIMIT_SECONDS:.0f} s")
        time.sleep(0.5)
        campaign = client.get(f"/campaigns/{campaign['id']}")
        tried = client.page(f"/campaigns/{campaign['id']}/experiments", None)["items"]
        for each in tried:
            if each["ended_at"] and each["id"] not in said:
                say(f"{each['verdict'] or each['state']:12} {', '.join(each['hypothesis'])}")
                if each["verdict"] == "inconclusive":
                    say(f"{'':12} {each['reason']}")
                said.add(each["id"])
    return campaign


@contextmanager
def killed(running: Services, every: Sequence[Service], names: Collection[str]) -> Iterator[None]:
    """Kill services for real, and start them again in the end."""
    for name in names:
        process = running.process(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    try:
        yield
    finally:
        running.start(*(each for each in every if each.name in names))


def in_order(sets: Iterable[Iterable[str]]) -> list[list[str]]:
    """Write sets as JSON has them, in an order that is always the same."""
    return sorted(sorted(each) for each in sets)
