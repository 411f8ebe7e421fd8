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

Since = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="A head that was kept: also prove that the chain has grown from it.",
    ),
]


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
def head(token: Token, since: Since = None, url: Url = HERE) -> None:
    """Print the head of the chain of runs, signed as of now. Keep it, to check by it later."""
    with connected(url, token) as client:
        answer = client.get("/head", since=_size(since))
    typer.echo(json.dumps(answer["head"]))


@app.command()
def get(
    campaign: Annotated[str, typer.Argument(help="The campaign's id.")],
    token: Token,
    since: Since = None,
    url: Url = HERE,
) -> None:
    """Print a campaign's certificates with every run they rest on, and the signed head."""
    with connected(url, token) as client:
        path = f"/campaigns/{segment(campaign)}/evidence"
        typer.echo(json.dumps(client.get(path, since=_size(since))))


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help="What `get` printed.")],
    key: Annotated[
        list[Path], typer.Option(help="The service's public keys in PEM; may be given again.")
    ],
    head: Annotated[
        Path | None, typer.Option(help="A head that was kept: the chain must have grown from it.")
    ] = None,
    max_age: Annotated[
        str | None, typer.Option(help="An older head is not enough, as `7d` or `12h`.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Verify that the service signed this, all of it, and that verdicts follow from outcomes.

    Needs no service. `python -m ldfi.proof` is the same, and imports nothing else of ldfi.
    """
    from ldfi.proof.__main__ import main

    given = [str(file), *(word for each in key for word in ("--key", str(each)))]
    given += [] if head is None else ["--head", str(head)]
    given += [] if max_age is None else ["--max-age", max_age]
    raise typer.Exit(main([*given, *(["--json"] if as_json else [])]))


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


def _size(since: Path | None) -> str | None:
    """Read the size of a head that was kept."""
    if since is None:
        return None
    from ldfi.proof.canonical import read
    from ldfi.proof.head import Head

    return str(Head.from_json(read(since.read_text(encoding="utf-8"))).size)


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
