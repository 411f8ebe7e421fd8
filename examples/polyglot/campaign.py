"""``make polyglot``: the shop and the service in real processes, visitors, and one campaign.

Nothing is told to the campaign but the traffic. Afterwards what it found is compared with what is
planted; spans of the injectors must have proved each finding, the certificate be borne out by its
evidence, and killing services for real must break the page exactly where something is planted.

Exit code: 0 where all of that holds, 1 where it does not, 2 where Go or Node is missing.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import polyglot
from together import Names, Say, Visitors, explored, in_order, killed, watching

from ldfi.cli.check_certificates import Demand, check_all
from ldfi.cli.client import Client
from ldfi.cli.ports import free_row
from ldfi.explore.external import environment
from ldfi.explore.external.services import Service, Services
from ldfi.explore.external.stamp import SharedKeys

VISITORS: Final = 6
APART: Final = 0.15
"""Seconds between an answer and the same visitor's next request."""
DEVICES: Final = 2000
SIZE: Final = 2
CAMPAIGN: Final = {
    "max_size": SIZE,
    "kinds": ["error"],
    "treatment": 0.3,
    "control": 0.3,
    "window": 45.0,
    "apart": 1.0,  # a minute on live traffic
    "min_traffic": 40,
    "delta": 0.4,  # what is planted hurts every request, so a coarse look is enough
    "min_samples": 6,
    "members": 200,
    "member_budget": 100_000,
    "admission": "all",  # visitors of ours feel no pain
    "settle": 1.0,
    "follow": 0.0,
    "rechecks": 0,  # what is planted is certain; on live traffic much is tried twice
}


@contextmanager
def visited(page: str) -> Iterator[None]:
    """Have devices look at the page."""
    with httpx.Client(trust_env=False, timeout=30) as client:

        def look(number: int) -> None:
            client.get(page, headers={"x-device-id": f"device-{number % DEVICES:04}"})

        with Visitors(look, VISITORS, APART):
            yield


@dataclass(frozen=True, slots=True)
class Shop:
    """What runs: the shop's services, the service that watches them, and what is planted."""

    running: Services
    every: Sequence[Service]
    client: Client
    planted: frozenset[Names]

    @property
    def page(self) -> str:
        """Return where a book is sold."""
        return f"{self.every[0].url}{polyglot.PATH}"


@contextmanager
def standing(folder: Path) -> Iterator[Shop]:
    """Start everything, with logs and state in ``folder``, and stop it in the end."""
    keys = SharedKeys(f"polyglot:{secrets.token_hex(16)}")
    there = polyglot.parts()
    first = free_row(len(polyglot.LISTENING) + 1)
    port = first + len(polyglot.LISTENING)
    url, operator, edge = f"http://127.0.0.1:{port}", *(secrets.token_urlsafe(24) for _ in "oe")
    told = environment.variables(keys, url)
    told |= {"LDFI_URL": url, "LDFI_TOKEN": edge, "TMPDIR": str(folder)}
    running = Services(told, folder, seconds=120)
    try:
        tokens = f"operator:{operator},edge:{edge},ingest:{keys.token}"
        running.start(watching(port, folder, tokens, {"LDFI_OUTCOMES": "root"}))
        every = polyglot.services(first, there)
        running.start(*every)
        planted = frozenset(map(frozenset, polyglot.planted(there)))
        yield Shop(running, every, Client(url, operator), planted)
    finally:
        running.close()


def proved(certificates: Sequence[Mapping[str, Any]]) -> set[Names]:
    """List the sets of faults of which traces show that all of them fired, and that a request
    failed then."""
    return {
        frozenset(run["failed"])
        for each in certificates
        for run in each["certificate"]["evidence"]
        if run["origin"] == "injected" and run["failed"] and run["traces"] and not run["support"]
    }


def deaths(shop: Shop, say: Say) -> dict[Names, bool]:
    """Kill every service and store behind the page, and what is planted together; tell for each
    whether the page survives it."""
    there = {each.name for each in shop.every}
    sets = [frozenset({name}) for name in (*polyglot.NAMES[1:], "postgres") if name in there]
    sets += [each for each in sorted(shop.planted, key=sorted) if len(each) > 1]
    found = {}
    for names in sets:
        with killed(shop.running, shop.every, names):
            found[names] = polyglot.shows(shop.every)
        say(f"{'survived' if found[names] else 'broken':12} {' and '.join(sorted(names))} killed")
    return found


def result(shop: Shop, folder: Path, say: Say) -> dict[str, Any]:
    """Explore the page, check what came of it, and hold it against killing services for real."""
    with visited(shop.page):
        began = time.monotonic()
        campaign = explored(shop.client, CAMPAIGN, say)
        seconds = time.monotonic() - began
    certificates = shop.client.get(f"/campaigns/{campaign['id']}/certificates")
    written = folder / "certificates.json"
    written.write_text(json.dumps(certificates), encoding="utf-8")
    (checked,) = check_all(written, Demand(complete=True, max_size=SIZE))
    findings = {frozenset(f) for each in campaign["classes"] for f in each["findings"]}
    died = deaths(shop, say)
    wrong = [
        names
        for names, survived in died.items()
        if survived is any(each <= names for each in shop.planted)
    ]
    return {
        "planted": in_order(shop.planted),
        "found": in_order(polyglot.broken(shop.every, faults) for faults in findings),
        "findings": in_order(findings),
        "not proved": in_order(findings - proved(certificates)),
        "certificate": checked.verdict,
        "reasons": list(checked.reasons),
        "killed": len(died),
        "killing says otherwise of": in_order(wrong),
        "experiments": campaign["experiments"],
        "exposed": campaign["exposed_members"],
        "hurt": campaign["failed_members"],
        "seconds": round(seconds, 1),
    }


def agrees(told: Mapping[str, Any]) -> bool:
    """Return whether all is as it was planted."""
    return (
        told["found"] == told["planted"]
        and told["certificate"] == "complete"
        and not told["not proved"]
        and not told["killing says otherwise of"]
    )


def main() -> int:
    """Build, run, compare, say. The exit code."""
    parser = argparse.ArgumentParser(prog="make polyglot")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    as_json = parser.parse_args().json
    say = partial(print, file=sys.stderr if as_json else sys.stdout, flush=True)
    if missing := polyglot.missing():
        say(missing)
        return 2
    say("Building the services in Go, and fetching what the one in Node needs …")
    polyglot.build()
    with tempfile.TemporaryDirectory(prefix="polyglot-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL does not run as root, and has to get in
        with standing(folder) as shop:
            say(f"{len(shop.every)} processes are up behind {shop.page}.")
            told = result(shop, folder, say)
    if as_json:
        print(json.dumps(told))
    for name, value in told.items():
        say(f"{name:26} {json.dumps(value)}")
    return 0 if agrees(told) else 1


if __name__ == "__main__":
    sys.exit(main())
