"""``ldfi open``: a page of the service in a browser, without typing a token there."""

from __future__ import annotations

import os
import sys
import webbrowser
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import quote

import typer

from ldfi.cli.control import HERE, AsJson, Token, Url, connected
from ldfi.cli.ids import HELP, beginning_with, only
from ldfi.cli.terminal import show
from ldfi.errors import NotFound

if TYPE_CHECKING:
    from ldfi.cli.client import Client

PAGES: Final = {
    "campaign": "/campaigns/{}",
    "experiment": "/experiments/{}",
    "finding": "/findings/{}",
    "maintenance": "/maintenance",
    "replay": "/replays/{}",
}
"""The page of what has an id, by its kind."""


def open_page(
    token: Token,
    identity: Annotated[
        str,
        typer.Argument(
            metavar="[ID]",
            help=f"Of a finding, a campaign, an experiment, a window or a replay, {HELP}.",
        ),
    ] = "",
    certificate: Annotated[
        bool, typer.Option("--certificate", help="Of a campaign: what it has proved.")
    ] = False,
    print_only: Annotated[
        bool, typer.Option("--print", help="Print the link, and open no browser.")
    ] = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Open the web pages, or the page of one ID; print a link that logs a browser in, once."""
    with connected(url, token) as client:
        page = _page_of(client, identity, certificate=certificate)
        link = login_link(client, page)
    show({"url": link}, link, as_json=as_json)
    if not as_json and not print_only and _has_screen():
        webbrowser.open(link)


def login_link(client: Client, page: str = "/") -> str:
    """Ask for a link that leads to ``page`` and logs a browser in; good once, for ten minutes."""
    path: str = client.post("/login-links")["path"]
    return f"{client.url}{path}" + (f"&next={quote(page, safe='')}" if page != "/" else "")


def _page_of(client: Client, typed: str, *, certificate: bool) -> str:
    """Find the page of what was typed. Raises NotFound, and Invalid where it may be several."""
    if not typed:
        return "/certificates" if certificate else "/"
    found = beginning_with(client, typed, "campaign" if certificate else None)
    if not found:
        kinds = "campaign" if certificate else "finding, campaign, experiment, window or replay"
        raise NotFound(f"no {kinds} has an id that is {typed}, or begins so")
    meant = only(typed, found)
    place = "/certificates/{}" if certificate else PAGES[meant["kind"]]
    return place.format(quote(meant["id"], safe=""))


def _has_screen() -> bool:
    """Tell whether a browser with a window can be there: one in the terminal is in the way."""
    if not sys.stdout.isatty():
        return False
    return sys.platform in {"darwin", "win32"} or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
