"""What people call requests, where people look: at a terminal.

A pipe, a file and ``--json`` have exact names always, for programs compare them; ``--exact`` has
them at a terminal, too.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ldfi.analysis.repairs.request_names import BY_THEIR_NAMES, Called
from ldfi.cli.control import connected
from ldfi.errors import NotFound

Exact = Annotated[
    bool, typer.Option("--exact", help="Requests by their exact names, as in a pipe.")
]


def called_by_people(url: str, token: str, *, exact: bool, as_json: bool) -> Called:
    """Ask the service how people call requests; nothing is asked where exact names are shown."""
    if exact or as_json or not sys.stdout.isatty():
        return BY_THEIR_NAMES
    with connected(url, token) as client:
        try:
            return Called(client.get("/classes/called"))
        except NotFound:  # a service from before it could say
            return BY_THEIR_NAMES
