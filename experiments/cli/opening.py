"""``ldfi open``: a page of the service in a browser, without typing a token there."""

from __future__ import annotations

import os
import sys
import webbrowser
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import quote

import typer

from ldfi.experiments.cli.control import HERE, AsJson, Token, Url, connected, segment
from ldfi.experiments.cli.terminal import show
from ldfi.experiments.errors import NotFound

if TYPE_CHECKING:
    from ldfi.experiments.cli.client import Client

PLACES: Final = ("findings", "experiments", "campaigns")
"""What has ids, and a page for each."""


def open_page(
    token: Token,
    identity: Annotated[
        str, typer.Argument(metavar="[ID]", help="Of a finding, an experiment or a campaign.")
    ] = "",
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Open the web pages, or the page of one ID; print a link that logs a browser in, once."""
    with connected(url, token) as client:
        page = _page_of(client, identity) if identity else "/"
        link = login_link(client, page)
    show({"url": link}, link, as_json=as_json)
    if not as_json and _has_screen():
        webbrowser.open(link)


def login_link(client: Client, page: str = "/") -> str:
    """Ask for a link that leads to ``page`` and logs a browser in; good once, for ten minutes."""
    path: str = client.post("/login-links")["path"]
    return f"{client.url}{path}" + (f"&next={quote(page, safe='')}" if page != "/" else "")


def _page_of(client: Client, identity: str) -> str:
    """Find what has an id. Raises NotFound."""
    for place in PLACES:
        path = f"/{place}/{segment(identity)}"
        try:
            client.get(path)
        except NotFound:
            continue
        return path
    raise NotFound(f"no finding, experiment or campaign has the id {identity}")


def _has_screen() -> bool:
    """Tell whether a browser with a window can be there: one in the terminal is in the way."""
    if not sys.stdout.isatty():
        return False
    return sys.platform in {"darwin", "win32"} or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
