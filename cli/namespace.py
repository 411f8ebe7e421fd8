"""``ldfi namespace``: several teams in one service."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ldfi.cli.control import HERE, AsJson, Token, Url, connected, posted
from ldfi.cli.terminal import columns, show
from ldfi.cli.words import when

app = typer.Typer(
    help="Several teams in one service, a namespace each. Needs an admin of the default one."
)

_LIMITS = ("max_concurrent", "members_per_hour", "members_per_day")


@app.command("set")
def set_(
    name: Annotated[str, typer.Argument(help="Small letters, digits and single hyphens.")],
    token: Token,
    max_concurrent: Annotated[
        int | None, typer.Option(help="Experiments at once.", show_default="those of all")
    ] = None,
    members_per_hour: Annotated[
        int | None, typer.Option(help="Members exposed in an hour.", show_default="those of all")
    ] = None,
    members_per_day: Annotated[
        int | None, typer.Option(help="Members exposed in a day.", show_default="those of all")
    ] = None,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Make a namespace, or give one that is there other limits."""
    limits = zip(_LIMITS, (max_concurrent, members_per_hour, members_per_day), strict=True)
    made = posted(url, token, "/namespaces", {"name": name, **dict(limits)})
    hint = f"`ldfi token create NAME admin --namespace {name}` makes its first token."
    show(made, f"{name}: {_limits(made)}.\n{hint}", as_json=as_json)


@app.command("list")
def list_namespaces(token: Token, url: Url = HERE, as_json: AsJson = False) -> None:
    """List the namespaces beside the default one, by name."""
    with connected(url, token) as client:
        found = client.get_all("/namespaces")
    table = columns("name", "made by", "made", "limits")
    for each in found:
        table.add_row(each["name"], each["created_by"], when(each["created_at"]), _limits(each))
    show(found, table, as_json=as_json)


def _limits(namespace: dict[str, Any]) -> str:
    said = (
        f"{namespace[limit]} {words}"
        for limit, words in zip(
            _LIMITS, ("at once", "members an hour", "members a day"), strict=True
        )
        if namespace[limit] is not None
    )
    return ", ".join(said) or "no limits but those of all"
