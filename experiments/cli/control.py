"""Commands that talk to a running service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from experiments.cli.client import Client

Url = Annotated[str, typer.Option(envvar="LDFI_URL", help="Where the service answers.")]
Token = Annotated[str, typer.Option(envvar="LDFI_TOKEN", help="A token of role operator.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

HERE = "http://127.0.0.1:8600"


@contextmanager
def connected(url: str, token: str) -> Iterator[Client]:
    """A client for as long as a command runs."""
    client = Client(url, token)
    try:
        yield client
    finally:
        client.close()


def findings(token: Token, url: Url = HERE, as_json: AsJson = False) -> None:
    """List what hurts: the minimal failing sets found so far."""
    with connected(url, token) as client:
        found = client.get("/findings")
    if as_json:
        typer.echo(json.dumps(found))
        return
    table = Table("finding", "request class", "faults")
    for item in found["items"]:
        table.add_row(item["id"], item["request_class"], "\n".join(item["faults"]))
    Console().print(table if found else "Nothing found yet. Start a campaign to look for failures.")


def halt(
    reason: Annotated[str, typer.Argument(help="Why; it goes into the audit.")],
    token: Token,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Disarm everything at once. Nothing starts again before `ldfi resume`."""
    with connected(url, token) as client:
        answer = client.post("/halt", {"reason": reason})
    typer.echo(json.dumps(answer) if as_json else f"Halted: {reason}. `ldfi resume` ends it.")


def resume(token: Token, url: Url = HERE, as_json: AsJson = False) -> None:
    """Let experiments start again after `ldfi halt`."""
    with connected(url, token) as client:
        answer = client.post("/resume")
    typer.echo(json.dumps(answer) if as_json else "Experiments may start again.")
