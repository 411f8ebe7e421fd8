"""What commands that talk to a running service have in common: their options, and the client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from ldfi.cli.secret import secret

if TYPE_CHECKING:
    from ldfi.cli.client import Client

HERE = "http://127.0.0.1:8600"


def _address(url: str) -> str:
    """Check the address before anything else is said to be missing. Raises Invalid."""
    if url != HERE:
        from ldfi.cli.client import service_url

        service_url(url)
    return url


Url = Annotated[
    str,
    typer.Option(
        envvar="LDFI_URL", callback=_address, is_eager=True, help="Where the service answers."
    ),
]
Token = Annotated[
    str,
    typer.Option(
        envvar="LDFI_TOKEN",
        callback=secret,
        help="A token: viewer to look, operator to change; @FILE, or - for standard input.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Limit = Annotated[int, typer.Option(min=1, help="List so many at most.")]
All = Annotated[bool, typer.Option("--all", help="List all, however many.")]
OptionalToken = Annotated[
    str | None,
    typer.Option(
        envvar="LDFI_TOKEN",
        callback=secret,
        help="A token, role viewer: finding and lineages come from the service; @FILE, or - for "
        "standard input.",
    ),
]
Reason = Annotated[str, typer.Option(help="Why; it goes into the audit.")]
Html = Annotated[
    Path | None,
    typer.Option("--html", help="Also write a web page that needs nothing from anywhere."),
]
Watch = Annotated[bool, typer.Option("--watch", help="Show what happens until it is over.")]


@contextmanager
def connected(url: str, token: str, **patience: Any) -> Iterator[Client]:
    """Open a client for as long as a command runs. ``patience``: as the client is told."""
    from ldfi.cli.client import Client

    client = Client(url, token, **patience)
    try:
        yield client
    finally:
        client.close()


def posted(url: str, token: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Post one document, and return what the service answers."""
    with connected(url, token) as client:
        answer: dict[str, Any] = client.post(path, body)
    return answer


def listed(
    url: str, token: str, path: str, limit: int, everything: bool, **wanted: str | bool | None
) -> dict[str, Any]:
    """Return the first ``limit`` items of a list, or all of them."""
    with connected(url, token) as client:
        page: dict[str, Any] = client.page(path, None if everything else limit, **wanted)
    return page


def segment(identity: str) -> str:
    """Write an identifier as one segment of a path, whatever is in it."""
    return quote(identity, safe="")
