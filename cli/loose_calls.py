"""``ldfi loose``: calls in traces of their own, and a person's word on whose they are."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from ldfi.cli.control import HERE, AsJson, Token, Url, connected, posted
from ldfi.cli.terminal import columns, show

app = typer.Typer(
    help="Calls that run in traces of their own: whose they are, as far as anybody knows."
)
Point = Annotated[str, typer.Argument(help="The point, as `ldfi loose list` names it.")]

_WHOSE: Final = {
    "theirs": "of these requests, by their times",
    "unclear": "nobody can tell",
    "apart": "of none, by their times",
}
_SAID: Final = {True: "said to be of these requests", False: "said to be of none"}


@app.command("list")
def list_calls(token: Token, url: Url = HERE, as_json: AsJson = False) -> None:
    """List calls in traces of their own, and arrivals that no recorded call explains."""
    with connected(url, token) as client:
        found = client.get_all("/loose-calls")
    table = columns("point", "calls", "within", "requests of", "whose", whole=0)
    for each in found:
        table.add_row(
            each["point"],
            str(each["calls"]),
            str(each["inside"]),
            "\n".join(each["classes"]),
            _whose(each),
        )
    show(found, table if found else "No call runs in a trace of its own.", as_json=as_json)


@app.command()
def yes(point: Point, token: Token, url: Url = HERE, as_json: AsJson = False) -> None:
    """Say that these calls are of the requests that they run within: part of their lineage."""
    _say(point, True, url, token, as_json=as_json)


@app.command()
def no(point: Point, token: Token, url: Url = HERE, as_json: AsJson = False) -> None:
    """Say that these calls are of no request: a poller's, say. They count as missing nowhere."""
    _say(point, False, url, token, as_json=as_json)


@app.command()
def undo(point: Point, token: Token, url: Url = HERE, as_json: AsJson = False) -> None:
    """Take back what was said of these calls."""
    _say(point, None, url, token, as_json=as_json)


def _say(point: str, said: bool | None, url: str, token: str, *, as_json: bool) -> None:
    answer = posted(url, token, "/loose-calls", {"point": point, "said": said})
    show(answer, f"{point}: {_whose(answer)}", as_json=as_json)


def _whose(each: dict[str, Any]) -> str:
    said: bool | None = each["said"]
    return _WHOSE[each["belongs"]] if said is None else _SAID[said]
