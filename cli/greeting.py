"""What ``ldfi serve`` says once it listens: where the pages are, and how to log in.

A link to log in with is for the eyes of whoever sits at this machine and nobody else's: it is shown
where standard error is a terminal and the service listens on loopback, never logged, and never made
in the name of a person whom the configuration names. It is good once, for ten minutes.
"""

from __future__ import annotations

import ipaddress
import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import uvicorn

from ldfi.cli.terminal import console
from ldfi.experiments.cluster.tokens import Role, Tokens

if TYPE_CHECKING:
    from socket import socket

_log = logging.getLogger("ldfi")

IN_WHOSE_NAME: Final[tuple[Role, ...]] = ("operator", "admin", "viewer")
"""Roles of a token that a link is made with, the first that there is: what people need to work."""

Told = Callable[[int], None]
"""Is told the port, once somebody listens there."""


class Greeting(uvicorn.Server):
    """A server that says so when it listens: only then is there a port, and only if it was free."""

    def __init__(self, config: uvicorn.Config, told: Told) -> None:
        super().__init__(config)
        self._told = told

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Listen, then tell."""
        await super().startup(sockets)
        if self.started and self.servers:
            self._told(int(self.servers[0].sockets[0].getsockname()[1]))


def greet(app: Any, tokens: Tokens, url: str, host: str) -> None:
    """Say where the pages of ``app`` are, and show a link where only its reader can use it."""
    path = _login_path(app, tokens) if sys.stderr.isatty() and is_loopback(host) else None
    if path is None:
        _log.info("pages and API at %s; `ldfi open` logs a browser in", url)
        return
    screen = console(stderr=True)
    screen.print(f"Pages and API at {url}")
    screen.print(f"Log in, once and within ten minutes: {url}{path}", soft_wrap=True)
    screen.print("Later, `ldfi open` makes another link; it asks for LDFI_TOKEN.", soft_wrap=True)


def is_loopback(host: str) -> bool:
    """Tell whether nobody but this machine can connect to an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _login_path(app: Any, tokens: Tokens) -> str | None:
    """Make a link in nobody's name; None where there are no pages, or only people's tokens."""
    make: Callable[[str], str] | None = getattr(app.state, "login_path", None)
    who = next(filter(None, map(tokens.unnamed, IN_WHOSE_NAME)), None)
    return None if make is None or who is None else make(who.id)
