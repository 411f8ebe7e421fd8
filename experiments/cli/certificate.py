"""``ldfi certificate``: what a campaign proved, and whether its evidence bears that out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ldfi.experiments.cli import exits
from ldfi.experiments.cli.control import HERE, AsJson, Html, Token, Url, connected, segment

app = typer.Typer(help="Certificates: what was proved, and what stayed open.")


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
    as_json: AsJson = False,
) -> None:
    """Verify certificates from their evidence alone, without trusting the solver."""
    from ldfi.solver.check import check as problems_of

    verdicts = {name: problems_of(data) for name, data in _certificates(file)}
    if as_json:
        typer.echo(json.dumps(verdicts))
    else:
        console = Console()
        for name, problems in verdicts.items():
            console.print(
                f"{name}: {'not borne out' if problems else 'borne out'}", highlight=False
            )
            for problem in problems:
                console.print(f"  {problem}", highlight=False)
    raise typer.Exit(exits.FOUND if any(verdicts.values()) else exits.FINE)


def _certificates(file: Path) -> list[tuple[str, dict[str, Any]]]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"{file} holds no JSON: {error}", param_hint="FILE") from error
    if isinstance(document, dict):
        return [(file.name, document)]
    try:
        return [(str(item["request_class"]), item["certificate"]) for item in document]
    except (TypeError, KeyError) as error:
        raise typer.BadParameter(
            f"{file} holds no certificates: {error!r} is missing", param_hint="FILE"
        ) from error
