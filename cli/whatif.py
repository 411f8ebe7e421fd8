"""``ldfi whatif``: with something down, which single further failure would hurt?"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from ldfi.cli import exits
from ldfi.cli.control import HERE, AsJson, Token, Url, connected
from ldfi.cli.request_names import Exact, called_by_people
from ldfi.cli.terminal import columns, show


def whatif(
    down: Annotated[
        list[str], typer.Option(help="A point, service or system, with *; repeatable.")
    ],
    token: Token,
    pattern: Annotated[
        str | None, typer.Option("--class", help="Only this class, or a pattern with *.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="List what is safe as well.")] = False,
    exact: Exact = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Say what one more failure would do, from the evidence alone. Nothing is injected.

    Exit code 1 when some failure is known to hurt, or the outage itself is; 3 when nothing is known
    to hurt but not everything is known; 0 when all is proved safe.
    """
    with connected(url, token) as client:
        answers = client.get_all("/whatif", down=down, request_class=pattern)
    called = called_by_people(url, token, exact=exact, as_json=as_json)
    table = columns("request class", "the outage", "one more failure of", whole=0)
    for answer in answers:
        name = called.name(answer["request_class"])
        table.add_row(name, _outage(answer["already"]), _more(answer, verbose))
    names = ", ".join(down)
    unknown = f"No request class{f' {pattern}' if pattern else ''} is known to call {names}."
    show(answers, table if answers else unknown, as_json=as_json)
    raise typer.Exit(code_of(answers))


def code_of(answers: list[dict[str, Any]]) -> int:
    """Sum up the answers. None at all proves nothing: the name may be misspelt."""
    if any(answer["hurts"] or answer["already"] == "failing" for answer in answers):
        return exits.FOUND
    known = all(not answer["unknown"] and answer["already"] == "safe" for answer in answers)
    return exits.FINE if answers and known else exits.INCONCLUSIVE


def _outage(already: str) -> Text:
    style = {"failing": "bold red", "open": "yellow", "safe": "green"}[already]
    return Text({"failing": "hurts", "open": "unknown", "safe": "safe"}[already], style)


def _more(answer: dict[str, Any], verbose: bool) -> Text:
    if answer["already"] == "failing":
        return Text("the outage is enough", "bold red")
    shown = Text()
    for word, style in (("hurts", "bold red"), ("unknown", "yellow")):
        for point in answer[word]:
            anyway = " (with or without the outage)" if point in answer["anyway"] else ""
            shown.append(f"{word:8}{point}{anyway}\n", style)
    safe = answer["safe"]
    for point in safe if verbose else ():
        shown.append(f"{'safe':8}{point}\n", "green")
    if safe and not verbose:
        shown.append(f"safe    {len(safe)} {'point' if len(safe) == 1 else 'points'}", "green")
    shown.rstrip()
    return shown if shown.plain else Text("nothing else to fail", "dim")
