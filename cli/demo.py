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
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ldfi.cli import exits
from ldfi.cli.control import AsJson
from ldfi.cli.demo_worlds import REPAIRED, SHOP, STREAMING, DemoWorld
from ldfi.cli.extras import need
from ldfi.cli.open_page import login_link
from ldfi.cli.ports import free_port
from ldfi.cli.processes import Processes
from ldfi.cli.terminal import console
from ldfi.errors import ExperimentsError, Unreachable

if TYPE_CHECKING:
    from rich.console import Console

    from ldfi.cli.client import Client
    from ldfi.cli.demo_run import Ran

START_SECONDS = 180.0
"""A machine with ten times as much to do as it can takes minutes."""


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
    full: Annotated[
        bool, typer.Option("--full", help="A streaming service of sixteen services instead.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the traffic and of the exploration.")] = 0,
    rate: Annotated[
        float | None,
        typer.Option(min=1, help="Requests a second; fewer where the machine serves fewer."),
    ] = None,
    devices: Annotated[
        int | None, typer.Option(min=50, max=100_000, help="How many simulated devices there are.")
    ] = None,
    keep: Annotated[
        bool | None,
        typer.Option(
            "--keep/--no-keep",
            help="Leave everything running at the end; by default at a terminal.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find the planted failures of a small shop, live."""
    need("demo")
    world = STREAMING if full else SHOP
    world = replace(world, rate=rate or world.rate, devices=devices or world.devices)
    screen = console(stderr=as_json)
    if keep is None:
        keep = screen.is_terminal and sys.stdin.isatty() and not as_json
    try:
        result = _demonstrate(world, seed, screen, keep=keep)
    except KeyboardInterrupt:
        screen.print("Stopped, and every process with it.")
        raise typer.Exit(exits.INTERRUPTED) from None
    if as_json:
        typer.echo(json.dumps(result))
    raise typer.Exit(exit_status(result))


def exit_status(result: Mapping[str, Any]) -> int:
    """Give the exit status of a demo: fine, other findings than planted, or not decided in time."""
    if result["matched"]:
        return exits.FINE
    return exits.FOUND if result["decided"] else exits.INCONCLUSIVE


def _demonstrate(world: DemoWorld, seed: int, console: Console, *, keep: bool) -> dict[str, Any]:
    from ldfi.cli.demo_run import run

    count = len(world.planted(os.environ.get(REPAIRED, "")))  # a wrong name is told at once
    started = time.monotonic()
    console.print(f"ldfi demo: {world.words}, {world.devices:,} devices,")
    console.print(f"{count} weaknesses that ldfi is not told of.", highlight=False)
    with _folder(console) as folder, Processes(folder.path) as processes:
        secret = Secrets.make()
        client, share = _start(processes, secret, folder.path, world, seed, console)
        definition = {**world.fitted(share), "seed": seed}
        left = world.limit - (time.monotonic() - started)
        ran = run(client, processes, definition, left, console)
        result = compared(client, world, ran, time.monotonic() - started)
        folder.wanted = not result["matched"]
        report(console, ran, result)
        console.print(f"Look at each: {client.url}/findings", soft_wrap=True)
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
    world: DemoWorld,
    seed: int,
    console: Console,
) -> tuple[Client, float]:
    """Start all of it. Returns a client, and the share of the requests that devices make."""
    from ldfi.cli.client import Client

    url = f"http://127.0.0.1:{free_port()}"
    _start_service(processes, secret, folder, url)
    wait_until_ready(url, processes)
    client = Client(url, secret.operator)
    console.print("Pages, by a link that works once, for ten minutes:")
    console.print(f"  {login_link(client)}", soft_wrap=True)
    spans = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{secret.ingest}",
    }
    console.print()
    return client, start_application(processes, secret, url, spans, world, seed)


def start_application(
    processes: Processes,
    secret: Secrets,
    url: str,
    spans: Mapping[str, str],
    world: DemoWorld,
    seed: int = 0,
    rates: str = "",
) -> float:
    """Start an application and its devices before the service at ``url``, and wait for both.

    ``spans``: OpenTelemetry's variables that say where its spans go. ``rates``: by class, if not as
    the world has them. Returns the share of the requests that devices make. Raises ExperimentsError
    where it does not start.
    """
    said = processes.start(
        "demo",
        [
            *(sys.executable, "-m", "ldfi.demo"),
            *("--world", world.name),
            *("--seed", str(seed)),
            *("--devices", str(world.devices)),
            *("--rates", rates or world.rates(world.rate)),
            *("--sampled", str(world.sampled)),
            *("--share", str(world.share)),
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
    ready, measured = said.readline(), said.readline()
    if not ready or not measured:
        time.sleep(0.2)
        processes.check()
        raise ExperimentsError("the demo application has not started")
    share: float = json.loads(measured)["share"]
    return share


def _start_service(processes: Processes, secret: Secrets, folder: Path, url: str) -> None:
    processes.start(
        "ldfi",
        [
            *(sys.executable, "-m", "ldfi.cli", "serve"),
            *("--port", url.rpartition(":")[2]),
            *("--database", str(folder / "ldfi.sqlite3")),
        ],
        {
            "LDFI_TOKENS": secret.tokens(),
            "LDFI_GRPC_PORT": "off",  # its services export over HTTP
            "LDFI_EXPORT_INTERVAL": "0.1",  # as demo/telemetry.py has it
            "LDFI_QUIET": "0.4",
            "LDFI_MEMBERS_PER_HOUR": "100000",
            "LDFI_MEMBERS_PER_DAY": "100000",
        },
    )


def wait_until_ready(url: str, processes: Processes) -> None:
    """Wait for a process of the service. Raises Unreachable, and ExperimentsError where one of the
    processes has died."""
    import httpx

    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        processes.check()
        try:
            if httpx.get(f"{url}/readyz", timeout=1.0, trust_env=False).is_success:
                return
        except httpx.HTTPError:
            time.sleep(0.05)
    raise Unreachable(f"the service did not come up at {url} within {START_SECONDS:.0f} s")


def compared(client: Client, world: DemoWorld, ran: Ran, seconds: float) -> dict[str, Any]:
    """Hold what was found against what is planted: the last line of ``--json``. Only what has hurt
    twice counts as found."""
    campaign = ran.campaign
    listed = client.page("/findings", None, campaign_id=campaign["id"])["items"]
    found = {
        (each["request_class"], tuple(sorted(each["faults"])))
        for each in listed
        if each["state"] == "open"
    }
    expected = world.planted(os.environ.get(REPAIRED, ""))
    return {
        "experiments": campaign["experiments"],
        "findings": [list(faults) for _, faults in sorted(found)],
        "expected": [list(faults) for _, faults in sorted(expected)],
        "matched": found == set(expected),
        "decided": not ran.left,
        "left": ran.left,
        "exposed_members": campaign["exposed_members"],
        "failed_members": campaign["failed_members"],
        "devices": campaign["devices"],
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
        "certificate": client.get_all(f"/campaigns/{campaign['id']}/certificates"),
    }


def report(console: Console, ran: Ran, result: dict[str, Any]) -> None:
    """Show at the end what hurts in the tree of calls, and what it took to find out."""
    from rich.text import Text

    from ldfi.cli.demo_picture import pictures
    from ldfi.cli.demo_view import sentences

    console.print()
    if ran.left:
        console.print("The time is over before all is decided.")
    for words in ran.left:
        console.print(words, soft_wrap=True)
    for line in (*pictures(ran.experiments, result), Text(), *sentences(result)):
        console.print(line, soft_wrap=True)


def _stay(client: Client, secret: Secrets, console: Console, processes: Processes) -> None:
    console.print(f"  {login_link(client, '/findings')}", soft_wrap=True)
    console.print("or, in another terminal:")
    wanted = f"export LDFI_URL={client.url} LDFI_TOKEN={secret.operator}"
    console.print(f"  {wanted}", soft_wrap=True)
    console.print("All of it goes on until Ctrl-C.")
    try:
        while True:
            processes.check()
            time.sleep(0.5)
    except KeyboardInterrupt:
        return
