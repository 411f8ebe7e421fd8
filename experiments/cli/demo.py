"""``ldfi demo``: the service and the demo application in real processes, and one campaign.

Nothing is told to the loop but the traffic. The planted weaknesses are read at the very end, to
compare them with what was found.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ldfi.experiments.cli import exits
from ldfi.experiments.cli.campaign_view import class_lines
from ldfi.experiments.cli.control import AsJson
from ldfi.experiments.cli.demo_pace import Asking, DevicesHeard, fitting, rates
from ldfi.experiments.cli.demo_view import (
    Machine,
    progress,
    report,
    slowed,
    traffic_so_far,
    verdict_line,
    why_not_done,
)
from ldfi.experiments.cli.extras import need
from ldfi.experiments.cli.opening import login_link
from ldfi.experiments.cli.ports import free_port
from ldfi.experiments.cli.processes import Processes
from ldfi.experiments.cli.terminal import console
from ldfi.experiments.errors import ExperimentsError, Invalid, Unreachable

if TYPE_CHECKING:
    from rich.console import Console

    from ldfi.experiments.cli.client import Client

START_SECONDS = 180.0
"""A machine with ten times as much to do as it can takes minutes."""
LIMIT_SECONDS = 560.0
"""From the start of all of it: whoever tries a demo waits for ten minutes and not longer."""

MEASURING_SECONDS = 30.0
"""How long the devices may take to say what this machine can serve."""

SAY_SECONDS = 5.0
"""Between two lines that say what is waited for, where no screen is drawn anew."""

SLOW_SECONDS = 30.0
"""Between two that say how slow the machine is, there as well."""

DEVICES = 1200
RATE = 104.0
"""Requests a second, on a machine that can serve them."""

REPAIRED = "DEMO_REPAIRED"
"""Weaknesses that the demo application is to begin without (``ldfi.demo.repairs``)."""

SHARE = "0.75"
"""Of what the machine can serve is asked for at most: a busy one answers so late that faults which
are survived look as if they hurt."""

CAMPAIGN = {
    "max_size": 2,
    "max_union": None,  # simulated members feel no pain; on live traffic keep the cap
    "treatment": 0.1,  # of three at once the third takes from what the others leave
    "control": 0.25,
    "window": 45.0,
    "apart": 15.0,  # a minute on live traffic
    "min_traffic": 60,
    "delay": 3.0,
    "delta": 0.4,  # what is planted hurts every request, so a coarse look is enough
    "min_samples": 6,
    "members": 240,
    "member_budget": 100_000,
    "settle": 2.0,
    "rechecks": 0,  # what is planted is certain; on live traffic much is tried twice
    "min_consistency": 0.0,  # a cache makes the start page's requests differ; unions see to that
}


@dataclass(frozen=True, slots=True)
class Secrets:
    """Made anew for every run; nobody else can inject anything."""

    key: str
    operator: str
    edge: str
    ingest: str
    devices: str

    @classmethod
    def make(cls) -> Secrets:
        return cls(*(secrets.token_urlsafe(24) for _ in range(5)))

    def tokens(self) -> str:
        """As the service reads them."""
        return (
            f"operator:{self.operator},edge:{self.edge},ingest:{self.ingest},devices:{self.devices}"
        )


def demo(
    seed: Annotated[int, typer.Option(help="Seed of the traffic and of the exploration.")] = 0,
    rate: Annotated[
        float,
        typer.Option(min=1, help="Requests a second at most; fewer where the machine is too slow."),
    ] = RATE,
    devices: Annotated[
        int, typer.Option(min=50, max=100_000, help="How many simulated devices there are.")
    ] = DEVICES,
    keep: Annotated[bool, typer.Option(help="Leave everything running at the end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Find the planted failures of a small streaming service, live."""
    need("demo")
    screen = console(stderr=as_json)
    try:
        result = _demonstrate(seed, rate, devices, keep, screen)
    except KeyboardInterrupt:
        screen.print("Stopped, and every process with it.")
        raise typer.Exit(exits.INTERRUPTED) from None
    if as_json:
        typer.echo(json.dumps(result))
    raise typer.Exit(exits.FINE if result["matched"] else exits.FOUND)


def _demonstrate(
    seed: int, rate: float, devices: int, keep: bool, console: Console
) -> dict[str, Any]:
    planted(os.environ.get(REPAIRED, ""))  # a name that is wrong is told at once
    started = time.monotonic()
    with _folder(console) as folder, Processes(folder.path) as processes:
        secret = Secrets.make()
        client, heard = _start(processes, secret, folder.path, (seed, rate, devices), console)
        definition = fitting({**CAMPAIGN, "seed": seed}, heard.first(MEASURING_SECONDS))
        left = LIMIT_SECONDS - (time.monotonic() - started)
        campaign = run(client, processes, definition, left, console, heard)
        result = compared(client, campaign, time.monotonic() - started)
        folder.wanted = not result["matched"]
        report(console, campaign, result)
        if keep:
            _stay(client, secret, console, processes)
    return result


@dataclass
class Folder:
    """Where state and logs are. ``wanted``: whether anybody will want to read them."""

    path: Path
    wanted: bool = False


@contextmanager
def _folder(console: Console) -> Iterator[Folder]:
    """Make a folder for state and logs, which stays where the demo failed."""
    folder = Folder(Path(tempfile.mkdtemp(prefix="ldfi-demo-")))
    try:
        yield folder
    except Exception:
        folder.wanted = True
        raise
    finally:
        if folder.wanted:
            console.print(f"What the processes said is kept in {folder.path}.", soft_wrap=True)
        else:
            shutil.rmtree(folder.path, ignore_errors=True)


def _start(
    processes: Processes,
    secret: Secrets,
    folder: Path,
    asked: tuple[int, float, int],
    console: Console,
) -> tuple[Client, DevicesHeard]:
    """Start all of it. ``asked``: seed, requests a second, devices."""
    from ldfi.experiments.cli.client import Client

    url = f"http://127.0.0.1:{free_port()}"
    console.print(f"Starting the service at {url} and the demo application …")
    _start_service(processes, secret, folder, url)
    wait_until_ready(url, processes, console)
    spans = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{secret.ingest}",
    }
    seed, rate, devices = asked
    heard = start_application(
        processes, secret, url, spans, seed, rates(rate), console, devices=devices
    )
    client = Client(url, secret.operator)
    console.print(f"Pages at {url}. Log in, once and within ten minutes:")
    console.print(f"  {login_link(client)}", soft_wrap=True)
    return client, heard


def start_application(
    processes: Processes,
    secret: Secrets,
    url: str,
    spans: Mapping[str, str],
    seed: int,
    rates: str,
    console: Console,
    *,
    devices: int = DEVICES,
) -> DevicesHeard:
    """Start the demo application and its devices before the service at ``url``, and wait for it.

    ``spans``: OpenTelemetry's variables that say where its spans go. ``rates``: as the demo has
    them. Returns what the devices say from now on. Raises ExperimentsError where it does not start.
    """
    said = processes.start(
        "demo",
        [
            *(sys.executable, "-m", "ldfi.demo"),
            *("--seed", str(seed)),
            *("--devices", str(devices)),
            *("--rates", rates),
            *("--share", SHARE),
        ],
        {
            "FIT_KEYS": f"demo:{secret.key}",
            "LDFI_URL": url,
            "LDFI_TOKEN": secret.edge,
            "LDFI_DEVICE_TOKEN": secret.devices,
            "OTEL_SEMCONV_STABILITY_OPT_IN": "http",
            **spans,
        },
    )
    ready = said.readline()
    if not ready:
        time.sleep(0.2)
        processes.check()
    application = json.loads(ready)
    console.print(
        f"{len(application['services'])} services are up behind {application['gateway']}; "
        f"{devices} simulated devices use them.",
    )
    return DevicesHeard(said)


def _start_service(processes: Processes, secret: Secrets, folder: Path, url: str) -> None:
    processes.start(
        "ldfi",
        [
            *(sys.executable, "-m", "ldfi.experiments.cli", "serve"),
            *("--port", url.rpartition(":")[2]),
            *("--database", str(folder / "ldfi.sqlite3")),
        ],
        {
            "LDFI_TOKENS": secret.tokens(),
            "LDFI_EXPORT_INTERVAL": "0.1",  # as demo/telemetry.py has it
            "LDFI_QUIET": "0.4",
            "LDFI_MEMBERS_PER_HOUR": "100000",
            "LDFI_MEMBERS_PER_DAY": "100000",
        },
    )


def wait_until_ready(url: str, processes: Processes, console: Console | None = None) -> None:
    """Wait for a process of the service, and say so. Raises Unreachable, and ExperimentsError where
    one of the processes has died."""
    import httpx

    began = said = time.monotonic()
    while (now := time.monotonic()) < began + START_SECONDS:
        processes.check()
        if console is not None and now > said + SAY_SECONDS:
            console.print(f"Waiting for the service to start ({Machine.now()}).", soft_wrap=True)
            said = now
        try:
            if httpx.get(f"{url}/readyz", timeout=1.0, trust_env=False).is_success:
                return
        except httpx.HTTPError:
            time.sleep(0.05)
    raise Unreachable(f"the service did not come up at {url} within {START_SECONDS:.0f} s")


def run(
    client: Client,
    processes: Processes,
    definition: Mapping[str, Any],
    limit: float,
    console: Console,
    heard: DevicesHeard | None = None,
) -> dict[str, Any]:
    """One campaign, shown while it runs, and how it ended. ``heard``: what the devices say.

    Raises ExperimentsError where that takes more than ``limit`` seconds, or a process dies.
    """
    from rich.live import Live

    campaign: dict[str, Any] = client.post("/campaigns", {"settings": dict(definition)})
    end = time.monotonic() + limit
    live = Live(console=console, refresh_per_second=4) if console.is_terminal else nullcontext()
    said, waiting, due, slow_due = 0, "", 0.0, 0.0
    with live as screen:
        while campaign["state"] == "running":
            asking = heard.newest if heard is not None else None
            if time.monotonic() > end:
                why = why_not_done(campaign, waiting, Machine.now(), asking)
                raise ExperimentsError(f"the campaign is not done after {limit:.0f} s:\n{why}")
            time.sleep(0.4)
            processes.check()
            campaign = client.get(f"/campaigns/{campaign['id']}")
            verdicts = _verdicts(client, campaign["id"])
            needed = definition["min_traffic"]
            waiting = "" if campaign["classes"] else _traffic(client, needed, asking)
            slow = "" if waiting else slowed(asking, Machine.now())
            if screen is not None:
                screen.update(progress(campaign, verdicts, waiting, slow))
                continue
            if time.monotonic() > due:
                lines = [waiting] if waiting else class_lines(campaign)
                if slow and time.monotonic() > slow_due:
                    lines.append(slow)
                    slow_due = time.monotonic() + SLOW_SECONDS
                for line in lines:
                    console.print(line, soft_wrap=True)
                due = time.monotonic() + SAY_SECONDS
            for line in verdicts[said:]:
                console.print(line, soft_wrap=True)
            said = len(verdicts)
    return campaign


def _traffic(client: Client, needed: int, asking: Asking | None) -> str:
    classes, status = client.get("/classes"), client.get("/status")
    return traffic_so_far(classes, status, needed, Machine.now(), asking)


def _verdicts(client: Client, campaign_id: str) -> list[str]:
    """One line for each experiment that has ended, in the order in which they ended."""
    tried = client.page(f"/campaigns/{campaign_id}/experiments", None)["items"]
    ended = [e for e in tried if e["ended_at"] and e["armed_at"]]
    return [verdict_line(each) for each in sorted(ended, key=lambda e: e["ended_at"])]


def compared(client: Client, campaign: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Hold what was found against what is planted: the last line of ``--json``."""
    found = {(c["name"], tuple(faults)) for c in campaign["classes"] for faults in c["findings"]}
    expected = planted(os.environ.get(REPAIRED, ""))
    return {
        "experiments": campaign["experiments"],
        "findings": [list(faults) for _, faults in sorted(found)],
        "expected": [list(faults) for _, faults in sorted(expected)],
        "matched": found == set(expected),
        "exposed_members": campaign["exposed_members"],
        "failed_members": campaign["failed_members"],
        "seconds": round(seconds, 1),
        "comparison": [
            {
                "class": name,
                "faults": list(faults),
                "weakness": expected.get((name, faults)),
                "found": (name, faults) in found,
            }
            for name, faults in sorted(found | set(expected))
        ],
        "certificate": client.get(f"/campaigns/{campaign['id']}/certificates"),
    }


def planted(repaired: str) -> dict[tuple[str, tuple[str, ...]], str]:
    """Name the weaknesses that the demo begins with, by class and faults. ``repaired``: names of
    those that it does not have, comma-separated, as the demo application reads them. Raises
    Invalid where it has none of that name."""
    weaknesses = json.loads((files("ldfi.demo") / "weaknesses.json").read_text())
    without = set(filter(None, repaired.split(",")))
    if unknown := without - {each["name"] for each in weaknesses}:
        there = ", ".join(each["name"] for each in weaknesses)
        raise Invalid(f"{REPAIRED}: no weakness is named {', '.join(sorted(unknown))}: {there}")
    return {
        (each["class"], tuple(sorted(each["faults"]))): each["name"]
        for each in weaknesses
        if each["name"] not in without
    }


def _stay(client: Client, secret: Secrets, console: Console, processes: Processes) -> None:
    console.print(
        f"Still running; Ctrl-C ends it. Look around at {login_link(client)} "
        "or, in another terminal:",
        soft_wrap=True,
    )
    wanted = f"export LDFI_URL={client.url} LDFI_TOKEN={secret.operator}"
    console.print(wanted, soft_wrap=True)
    try:
        while True:
            processes.check()
            time.sleep(0.5)
    except KeyboardInterrupt:
        return
