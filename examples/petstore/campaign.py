"""``make petstore``: the petstore and the service in real processes, visitors, and one campaign.

Nothing is told to the campaign but the traffic. Afterwards what it found is compared with what is
planted (``planted.json``), and each process is killed for real, for longer than the cache keeps a
name and the breaker stays open: what then fails has to be what is planted, with the breaker closed
and with it open, and to bear out every finding. ``--quick`` kills nobody.

Exit code: 0 where all of that holds, 1 where it does not, 2 where a JDK, Maven or PostgreSQL is
missing.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import petstore
from deaths import KINDS, Death, died, recovered
from together import Say, explored, watching
from visitors import Devices, Gateway

from ldfi.cli.client import Client
from ldfi.cli.ports import free_row
from ldfi.cli.words import BYSTANDERS_HURT
from ldfi.explore.external import environment
from ldfi.explore.external.services import Service, Services
from ldfi.explore.external.stamp import SharedKeys

CAMPAIGN: Final = {
    "max_size": 1,
    "kinds": ["error"],
    "treatment": 0.5,  # of the breaker's calls three in four look at orders: more of them have to
    "control": 0.3,  # fail than it bears, or it opens by chance alone
    "window": 60.0,
    "apart": 1.0,  # a minute on live traffic
    "min_traffic": 40,
    "min_consistency": 0.3,  # half of the pets are in the cache, and half are not
    "delta": 0.3,  # what is planted hurts every request, so a coarse look is enough
    "min_samples": 8,  # enough of them open the breaker, and are there while others are turned away
    "members": 200,
    "member_budget": 100_000,
    "admission": "all",  # visitors of ours feel no pain
    "settle": 1.0,
    "follow": 0.0,
    "rechecks": 0,  # what is planted is certain; on live traffic much is tried twice
}

KNOWN: Final = 200
"""Requests of each kind that went well before anything is injected."""
PATIENCE: Final = 180.0
"""Seconds that this may take."""

Pair = tuple[str, str]
"""A kind of request, and a service that it fails without."""
Pairs = set[Pair]
KEPT: Final = frozenset({"GET /pets/*"})
"""What the cache answers for a while."""


@dataclass(frozen=True, slots=True)
class Petstore:
    """What runs: the petstore, and the service that watches it."""

    running: Services
    every: Sequence[Service]
    gateway: Gateway
    client: Client
    reports: tuple[str, str]

    @property
    def first_port(self) -> int:
        """The gateway's, which the others follow."""
        return self.every[0].port


@contextmanager
def standing(folder: Path) -> Iterator[Petstore]:
    """Start everything, with logs and state in ``folder``, and stop it in the end."""
    keys = SharedKeys(f"petstore:{secrets.token_hex(16)}")
    first = free_row(len(petstore.LISTENING) + 1)
    port = first + len(petstore.LISTENING)
    url = f"http://127.0.0.1:{port}"
    operator, edge, devices = (secrets.token_urlsafe(24) for _ in range(3))
    told = environment.variables(keys, url)
    told |= {"LDFI_URL": url, "LDFI_TOKEN": edge, "TMPDIR": str(folder)}
    running = Services(told, folder, seconds=600)
    try:
        tokens = f"operator:{operator},edge:{edge},devices:{devices},ingest:{keys.token}"
        running.start(watching(port, folder, tokens, {}))
        every = petstore.services(first)
        running.start(*every)
        with httpx.Client(trust_env=False, timeout=30) as http:
            gateway = Gateway(every[0].url, http)
            yield Petstore(running, every, gateway, Client(url, operator), (url, devices))
    finally:
        running.close()


def found(client: Client, campaign: Mapping[str, Any], first_port: int) -> tuple[Pairs, Pairs]:
    """Return what was found, and what stays open since only others failed, twice: interference."""

    def about(request_class: str, faults: Sequence[str]) -> Pairs:
        return {(request_class, petstore.broken(first_port, fault)) for fault in faults}

    own, beside = set[Pair](), Counter[Pair]()
    for finding in client.page("/findings", None, state="open")["items"]:
        own |= about(finding["request_class"], finding["faults"])
    tried = client.page("/experiments", None, campaign=campaign["id"], verdict="inconclusive")
    for each in tried["items"]:
        if each["reason"].startswith(BYSTANDERS_HURT) and len(each["hypothesis"]) == 1:
            beside.update(about(each["request_class"], each["hypothesis"]))
    return own, {pair for pair, times in beside.items() if times > 1 and pair not in own}


def pairs(table: Mapping[str, Sequence[str]]) -> Pairs:
    """List a table of the planted file: kinds of request, each with what it fails without."""
    return {(kind, service) for kind, services in table.items() for service in services}


def confirmed(others: Pairs, deaths: Sequence[Death]) -> Pairs:
    """Return interference that killing confirms: another kind of request failed
    with the breaker open that did not before, or the same one does, which others make as well."""
    by_service = {death.service: death for death in deaths}
    return {
        (kind, service)
        for kind, service in others
        if (death := by_service[service]).open and (death.open - {kind} or kind in death.closed)
    }


def contradicted(own: Pairs, others: Pairs, deaths: Sequence[Death]) -> dict[str, list[Any]]:
    """Hold what is planted, and what was found, against what really fails."""
    closed = {(kind, death.service) for death in deaths for kind in death.closed}
    opened = {(kind, death.service) for death in deaths for kind in death.open or ()}
    kept = {(kind, death.service) for death in deaths for kind in death.closed & KEPT - death.kept}
    return {
        "closed": sorted(closed ^ pairs(petstore.PLANTED["fails with the breaker closed"])),
        "open": sorted(opened ^ pairs(petstore.PLANTED["fails with the breaker open"])),
        "kept": sorted(kept ^ pairs(petstore.PLANTED["survived while the cache has it"])),
        "own": sorted(own - closed),
        "others": sorted(others - confirmed(others, deaths)),
    }


def well_known(client: Client) -> None:
    """Wait until it is known how each kind of request fares by itself: what fails beside the first
    experiments could pass for its nature otherwise. Raises TimeoutError."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        good = {each["name"]: each["good"] for each in client.get("/classes")}
        if all(good.get(kind, 0) >= KNOWN for kind in KINDS):
            return
        time.sleep(0.5)
    raise TimeoutError(
        f"after {PATIENCE:.0f} s not {KNOWN} requests of each kind went well: {good}"
    )


def explore(store: Petstore, say: Say) -> dict[str, Any]:
    """Let visitors in, run one campaign, and say what came of it beside what is planted."""
    recovered(store.gateway)  # the first requests of a JVM are slow
    with Devices(store.gateway, *store.reports).visiting():
        well_known(store.client)
        began = time.monotonic()
        campaign = explored(store.client, CAMPAIGN, say)
        seconds = time.monotonic() - began
    own, others = found(store.client, campaign, store.first_port)
    opens = pairs(petstore.PLANTED["survived, and opens the breaker for others"])
    both = pairs(petstore.PLANTED["fails, and opens the breaker for others as well"])
    planted = pairs(petstore.PLANTED["fails with the breaker closed"])
    return {
        "found": sorted(own),
        "interference": sorted(others),
        "missed": sorted((planted - own - (both & others)) | (opens - others)),
        "not planted": sorted((own - planted) | (others - opens - both)),
        "experiments": campaign["experiments"],
        "exposed": campaign["exposed_members"],
        "hurt": campaign["failed_members"],
        "seconds": round(seconds, 1),
    }


def kill(store: Petstore, told: Mapping[str, Any], say: Say) -> dict[str, Any]:
    """Kill each process behind the gateway, and hold everything against what then fails."""
    deaths = []
    for service in petstore.LISTENING[1:]:
        death = died(store.running, store.every, store.gateway, service)
        opened = "never opens" if death.open is None else f"open: {', '.join(sorted(death.open))}"
        say(f"{service:12} killed; breaker closed: {', '.join(sorted(death.closed))}; {opened}")
        deaths.append(death)
    wrong = contradicted(set(told["found"]), set(told["interference"]), deaths)
    return {"killed": len(deaths), "killing says otherwise": wrong}


def agrees(told: Mapping[str, Any]) -> bool:
    """Return whether all is as it was planted."""
    wrong = told.get("killing says otherwise", {})
    return not (told["missed"] or told["not planted"] or any(wrong.values()))


def main() -> int:
    """Build, run, compare, say. The exit code."""
    parser = argparse.ArgumentParser(prog="make petstore")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quick", action="store_true", help="kill nobody")
    given = parser.parse_args()
    say = partial(print, file=sys.stderr if given.json else sys.stdout, flush=True)
    if missing := petstore.missing():
        say(missing)
        return 2
    say("Building the extension and the four services …")
    petstore.build()
    with tempfile.TemporaryDirectory(prefix="petstore-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL does not run as root, and has to get in
        with standing(folder) as store:
            say(f"{len(store.every)} processes are up behind {store.gateway.url}.")
            told = explore(store, say)
            for what, value in told.items():
                say(f"{what:26} {json.dumps(value)}")
            if not given.quick:
                told |= kill(store, told, say)
                say(f"{'killing says otherwise':26} {json.dumps(told['killing says otherwise'])}")
    if given.json:
        print(json.dumps(told))
    return 0 if agrees(told) else 1


if __name__ == "__main__":
    sys.exit(main())
