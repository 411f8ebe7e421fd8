"""``ldfi doctor``: what is missing until campaigns can begin, and what to do about it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from ldfi.cli import exits
from ldfi.cli.control import HERE, AsJson, Token, Url, connected
from ldfi.cli.terminal import show
from ldfi.errors import ExperimentsError, Unreachable
from ldfi.experiments.cluster.published_secrets import ADVICE, is_example

if TYPE_CHECKING:
    from ldfi.cli.client import Client
    from ldfi.experiments.queries.diagnosis import Checkup

_ROLE = re.compile(r"you are (\w+)")
MARKS = {True: ("fine", "green"), False: ("mend", "bold red"), None: ("–", "dim")}


def doctor(
    token: Token,
    target: Annotated[
        str | None,
        typer.Option(help="URL at your edge: two harmless GET requests go there, signed."),
    ] = None,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Say what is missing until campaigns can begin, and what to do about it.

    Exit code 0 where nothing is, as far as the service can tell; 3 where something is. With
    --target requests into which nothing is injected show whether a failure context reaches every
    service, by FIT_KEYS of this shell; without, nothing is sent through your system.
    """
    with connected(url, token) as client:
        found = list(_looked_at(client, token, target))
    picture = Table.grid(padding=(0, 1))
    for each in found:
        line = Text(f"{each.about}: {each.said}").append(
            f"\n→ {each.advice}" if each.advice else ""
        )
        picture.add_row(Text(*MARKS[each.well]), line)
    show([each.to_json() for each in found], picture, as_json=as_json)
    ill = any(each.well is False for each in found)
    raise typer.Exit(exits.INCONCLUSIVE if ill else exits.FINE)


def _looked_at(client: Client, token: str, target: str | None) -> Iterator[Checkup]:
    from ldfi.experiments.queries.diagnosis import (
        Checkup,
        of_classes,
        of_keys,
        of_status,
        of_traces,
    )

    role = _role(client)
    yield Checkup("service", True, f"{client.url} answers")
    may = role in {"viewer", "operator", "admin"}
    advice = "" if may else "set LDFI_TOKEN to a token of role viewer, operator or admin"
    if is_example(token):
        said = f"its role is {role}, and it is an example that is published"
        yield Checkup("token", False, said, f"make others: {ADVICE}")
    else:
        yield Checkup("token", may, f"its role is {role}", advice)
    yield of_keys(*_keys())
    if not may:
        return
    status = client.get("/status")
    yield from of_status(status)
    yield from of_traces(client.metrics(), status["dropped"])
    yield from of_classes(client.get_all("/classes"), client.post("/forecast", {}), time.time())
    if target is not None:
        yield from _probed(client, target)


def _probed(client: Client, target: str) -> Iterator[Checkup]:
    from ldfi.cli.probe_target import probed
    from ldfi.experiments.queries.diagnosis import Checkup
    from ldfi.fit.protocol.keys import VARIABLE, Keys

    if _keys()[0] is None:
        advice = "set FIT_KEYS as your services have it; `ldfi init` wrote it into ldfi.env"
        yield Checkup("request", False, "none was sent: there is no key to sign it with", advice)
        return
    yield from probed(client, Keys.parse(os.environ[VARIABLE]), target)


def _role(client: Client) -> str:
    """Ask for what only admins may see: whoever is refused is told who they are."""
    try:
        client.get("/tokens", limit=1)
    except Unreachable:
        raise
    except ExperimentsError as error:
        said = _ROLE.search(str(error))
        if said is None:
            raise
        return said[1]
    return "admin"


def _keys() -> tuple[str | None, str]:
    """Return the id of the key that this shell signs with, or why it cannot be read."""
    from ldfi.fit.protocol.errors import KeyFormatError
    from ldfi.fit.protocol.keys import VARIABLE, Keys

    text = os.environ.get(VARIABLE, "")
    if any(is_example(each.rpartition(":")[2]) for each in text.split(",")):
        return None, "FIT_KEYS has an example that is published: whoever reads it can inject"
    try:
        return (Keys.parse(text).signing_id, "") if text else (None, "")
    except KeyFormatError as error:
        return None, str(error)
