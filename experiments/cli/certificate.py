"""``ldfi certificate``: what a campaign proved, and whether its evidence bears that out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ldfi.experiments.cli import exits
from ldfi.experiments.cli.checked import Asked, Verdict, check_all, said
from ldfi.experiments.cli.control import HERE, AsJson, Html, Token, Url, connected, segment

app = typer.Typer(help="Certificates: what was proved, and what stayed open.")

SEVERITY = (exits.FOUND, exits.USAGE, exits.INCONCLUSIVE, exits.FINE)
"""Exit codes, the worst first."""


@app.command()
def show(
    campaign: Annotated[str, typer.Argument(help="The campaign's id.")],
    token: Token,
    html: Html = None,
    url: Url = HERE,
) -> None:
    """Print a campaign's certificates as JSON, one for each request class."""
    path = f"/campaigns/{segment(campaign)}/certificates"
    with connected(url, token) as client:
        certificates = client.get(path)
        if html is not None:
            html.write_text(client.page_file(f"{path}/file"), encoding="utf-8")
    typer.echo(json.dumps(certificates))


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="One certificate, or several as `show` has them.")],
    complete: Annotated[
        bool,
        typer.Option("--complete", help="Nothing may be left out that --protected does not name."),
    ] = False,
    max_size: Annotated[
        int | None, typer.Option(min=1, help="Faults at once that have to be covered.")
    ] = None,
    classes: Annotated[
        list[str] | None, typer.Option("--class", help="A class that has to be certified.")
    ] = None,
    protected: Annotated[
        list[str] | None,
        typer.Option(help="Faults or points that may be left out; * stands for anything."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Verify certificates from their evidence alone, without trusting the solver.

    Exits with 0 where all of them are borne out and leave nothing open within the bounds asked for,
    with 3 where something is open, with 1 where one is false, with 2 where one cannot be read.
    """
    asked = Asked(complete, max_size, tuple(classes or ()), tuple(protected or ()))
    verdicts = check_all(file, asked)
    if as_json:
        typer.echo(json.dumps([each.document() for each in verdicts]))
    else:
        for each in verdicts:
            for line in said(each):
                typer.echo(line)
    raise typer.Exit(min((_code(each) for each in verdicts), key=SEVERITY.index))


def _code(verdict: Verdict) -> int:
    return {
        "complete": exits.FINE,
        "open": exits.INCONCLUSIVE,
        "false": exits.FOUND,
        "unreadable": exits.USAGE,
    }[verdict.verdict]
