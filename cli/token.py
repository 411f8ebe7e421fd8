"""``ldfi token``: who may call the service."""

from __future__ import annotations

import json
import re
from typing import Annotated

import typer

from ldfi.cli.control import HERE, AsJson, Token, Url, connected, segment
from ldfi.cli.ids import HELP, only
from ldfi.cli.terminal import columns, console
from ldfi.cli.words import when

app = typer.Typer(help="Bearer tokens: make, list, revoke. Needs a token of role admin.")

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Whom it is for; the audit shows this name.")],
    role: Annotated[str, typer.Argument(help="viewer, operator, admin, ingest, devices or edge.")],
    token: Token,
    expires: Annotated[
        str | None, typer.Option(help="After how long it expires, e.g. 12h or 90d. Default: never.")
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            help="For which namespace, with an admin's token of the default one. Default: your own."
        ),
    ] = None,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Make a token. It is shown this once."""
    wanted = {"name": name, "role": role, "expires_in": _seconds(expires)}
    with connected(url, token, namespace=namespace) as client:
        made = client.post("/tokens", wanted)
    typer.echo(json.dumps(made) if as_json else made["token"])


@app.command("list")
def list_tokens(token: Token, url: Url = HERE, as_json: AsJson = False) -> None:
    """List tokens, newest first: whom they are for, never what they are."""
    with connected(url, token) as client:
        entries = client.page("/tokens", None)["items"]
    if as_json:
        typer.echo(json.dumps(entries))
        return
    table = columns("id", "name", "role", "made by", "made", "expires", "revoked")
    for entry in entries:
        table.add_row(
            *(entry[column] for column in ("id", "name", "role", "created_by")),
            _date(entry["created_at"]),
            _date(entry["expires_at"]),
            "yes" if entry["revoked"] else "",
        )
    console().print(table)


@app.command()
def revoke(
    token_id: Annotated[str, typer.Argument(help=f"The token's id, {HELP}.")],
    token: Token,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Take a token back. Within seconds it opens nothing any more."""
    with connected(url, token) as client:
        known = client.page("/tokens", None)["items"]
        found = [{**each, "kind": "token"} for each in known if each["id"].startswith(token_id)]
        identity = only(token_id, found)["id"] if found else token_id
        entry = client.delete(f"/tokens/{segment(identity)}")
    typer.echo(json.dumps(entry) if as_json else f"Revoked: {entry['name']}, {entry['role']}.")


def _seconds(text: str | None) -> int | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)([smhd])", text)
    if found is None:
        raise typer.BadParameter(
            f"{text!r} is no length of time: 30m, 12h, 90d", param_hint="--expires"
        )
    return int(found[1]) * _UNITS[found[2]]


def _date(at: float | None) -> str:
    return "" if at is None else when(at)
