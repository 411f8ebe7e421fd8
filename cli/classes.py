"""``ldfi classes``: what the traffic consists of."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from ldfi.analysis.words import percent
from ldfi.cli.control import HERE, All, AsJson, Limit, Token, Url, connected
from ldfi.cli.request_names import Exact, called_by_people
from ldfi.cli.terminal import columns, show

MOST = 2_000
"""What the API gives at most."""


def classes(
    token: Token,
    pattern: Annotated[
        str | None, typer.Argument(help="A name, or a pattern with *; every class by default.")
    ] = None,
    limit: Limit = 200,
    everything: All = False,
    exact: Exact = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """List the request classes, the busiest first: their traffic, and what they rely on."""
    with connected(url, token) as client:
        found = client.get_all(
            "/classes", name=pattern, limit=MOST if everything else min(limit, MOST)
        )
    called = called_by_people(url, token, exact=exact, as_json=as_json)
    table = columns("request class", "per min", "good", "alike", "relies on", whole=0)
    for each in found:
        name = Text(called.name(each["name"]))
        if name.plain != each["name"]:
            name.append(f"\n{each['name']}", "dim")
        if each["unfit"]:
            name.append(f"\nnot explored: {each['unfit']}", "yellow")
        for point, kinds in each.get("shown", {}).items():
            name.append(f"\nfailed by itself: {point}: {', '.join(kinds)}", "dim")
        for point, install in each.get("no_injector", {}).items():
            name.append(f"\nno injector: {point}: install {install}", "yellow")
        for point, share in each.get("shares", {}).items():
            name.append(f"\nonly {percent(share)} of its requests call {point}", "dim")
        if line := each.get("unseen", {}).get("line"):
            name.append(f"\n{line}", "yellow")
        for what, why in each.get("not_looked_at", {}).items():
            name.append(f"\nnot looked at: {what} ({why})", "dim")
        table.add_row(
            name,
            f"{each['per_minute']:.1f}",
            percent(each["success_rate"]),
            percent(each["consistency"]),
            "\n".join(each["support"]),
        )
    nothing = f"No class is called {pattern}." if pattern else "No class has been seen yet."
    show(found, table if found else nothing, as_json=as_json)
