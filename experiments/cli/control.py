"""What commands that talk to a running service have in common: their options, and the client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

if TYPE_CHECKING:
    from ldfi.experiments.cli.client import Client

Url = Annotated[str, typer.Option(envvar="LDFI_URL", help="Where the service answers.")]
Token = Annotated[
    str,
    typer.Option(envvar="LDFI_TOKEN", help="A token: viewer to look, operator to change."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Limit = Annotated[int, typer.Option(min=1, help="List so many at most.")]
All = Annotated[bool, typer.Option("--all", help="List all, however many.")]
OptionalToken = Annotated[
    str | None,
    typer.Option(
        envvar="LDFI_TOKEN",
        help="A token, role viewer: finding and lineages come from the service.",
    ),
]
Reason = Annotated[str, typer.Option(help="Why; it goes into the audit.")]
Html = Annotated[
    Path | None,
    typer.Option("--html", help="Also write a web page that needs nothing from anywhere."),
]
Watch = Annotated[bool, typer.Option("--watch", help="Show what happens until it is over.")]

HERE = "http://127.0.0.1:8600"


@contextmanager
def connected(url: str, token: str) -> Iterator[Client]:
    """A client for as long as a command runs."""
    from ldfi.experiments.cli.client import Client

    client = Client(url, token)
    try:
        yield client
    finally:
        client.close()


def segment(identity: str) -> str:
    """An identifier as one segment of a path, whatever is in it."""
    return quote(identity, safe="")
