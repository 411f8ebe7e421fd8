"""``ldfi certificate``: what a campaign proved, and whether its evidence bears that out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ldfi.cli import exits
from ldfi.cli.control import HERE, AsJson, Html, Token, Url, connected
from ldfi.cli.ids import HELP, path_of

if TYPE_CHECKING:
    from ldfi.cli.check_certificates import Checked


app = typer.Typer(help="Certificates: what was proved, and what stayed open.")

Since = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="A head that was kept: also prove that the chain has grown from it.",
    ),
]
Keys = Annotated[
    list[Path] | None,
    typer.Option(help="The service's public keys in PEM; may be given again. Tests need none."),
]
Classes = Annotated[
    list[str] | None, typer.Option("--class", help="A class that has to be certified.")
]
SEVERITY = (exits.FOUND, exits.USAGE, exits.INCONCLUSIVE, exits.FINE)
"""Exit codes, the worst first."""


@app.command()
def show(
    campaign: Annotated[str, typer.Argument(help=f"The campaign's id, {HELP}.")],
    token: Token,
    html: Html = None,
    url: Url = HERE,
) -> None:
    """Print a campaign's certificates as JSON, one for each request class."""
    with connected(url, token) as client:
        path = f"{path_of(client, 'campaign', campaign)}/certificates"
        certificates = client.get_all(path)
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
def adopt(as_json: AsJson = False) -> None:
    """Sign the runs on record as they are: you vouch for whatever the database holds.

    For a service that has got its first key, or whose database was restored. Needs its
    configuration (database and LDFI_SIGNING_KEY), not its API.
    """

    heads = adopted()
    if as_json:
        typer.echo(json.dumps(heads))
        return
    for namespace, signed in heads.items():
        typer.echo(f"{namespace or 'default'}: {signed['size']} runs are signed")


@app.command()
def get(
    campaign: Annotated[str, typer.Argument(help=f"The campaign's id, {HELP}.")],
    token: Token,
    since: Since = None,
    url: Url = HERE,
) -> None:
    """Print a campaign's certificates with every run they rest on, and the signed head."""
    with connected(url, token) as client:
        path = f"{path_of(client, 'campaign', campaign)}/evidence"
        typer.echo(json.dumps(client.get(path, since=_size(since))))


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help="What `get` or the pytest plugin wrote.")],
    key: Keys = None,
    head: Annotated[
        Path | None, typer.Option(help="A head that was kept: the chain must have grown from it.")
    ] = None,
    max_age: Annotated[
        str | None, typer.Option(help="An older head is not enough, as `7d` or `12h`.")
    ] = None,
    classes: Classes = None,
    as_json: AsJson = False,
) -> None:
    """Verify that the service signed this, all of it, and that verdicts follow from outcomes.

    Needs no service. `python -m ldfi.checker` is the same, and imports nothing else of ldfi.
    """
    from ldfi.checker.__main__ import main

    given = [str(file), *(word for each in key or () for word in ("--key", str(each)))]
    given += [] if head is None else ["--head", str(head)]
    given += [] if max_age is None else ["--max-age", max_age]
    given += [word for each in classes or () for word in ("--class", each)]
    raise typer.Exit(main([*given, *(["--json"] if as_json else [])]))


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
    classes: Classes = None,
    protected: Annotated[
        list[str] | None,
        typer.Option(help="Faults or points that may be left out; * stands for anything."),
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="The largest δ that *tolerated* may have meant.")
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="The largest chance of a false verdict.")
    ] = None,
    rule: Annotated[
        Literal["tests", "threshold"] | None, typer.Option(help="How verdicts had to be reached.")
    ] = None,
    presumed: Annotated[
        float | None,
        typer.Option(help="The largest share of sets presumed safe that may not be, at 95 %."),
    ] = None,
    heard: Annotated[
        float | None,
        typer.Option(help="The least share of devices that must have been heard of."),
    ] = None,
    patience: Annotated[
        float | None,
        typer.Option(help="The least time that faults must have held, in seconds."),
    ] = None,
    unseen: Annotated[
        float | None,
        typer.Option(help="The largest share of calls that may not be seen, at 95 %."),
    ] = None,
    key: Keys = None,
    as_json: AsJson = False,
) -> None:
    """Verify certificates from their evidence alone, without trusting the solver.

    With --key they have to be signed as well: what `get` printed is verified first.

    Exits with 0 where all of them are borne out and leave nothing open within the bounds asked for,
    with 3 where something is open, with 1 where one is false, with 2 where one cannot be read.
    """
    from ldfi.checker.verdict_meaning import Required
    from ldfi.cli.check_certificates import Demand, check_all, said

    asked = Demand(
        complete,
        max_size,
        tuple(classes or ()),
        tuple(protected or ()),
        Required(delta, alpha, rule, presumed, heard, patience, unseen),
        tuple(key or ()),
    )
    verdicts = check_all(file, asked)
    if as_json:
        typer.echo(json.dumps([each.document() for each in verdicts]))
    else:
        for each in verdicts:
            for line in said(each):
                typer.echo(line)
    raise typer.Exit(min((_code(each) for each in verdicts), key=SEVERITY.index))


def _size(since: Path | None) -> str | None:
    """Read the size of a head that was kept."""
    if since is None:
        return None
    from ldfi.checker.canonical import read
    from ldfi.checker.head import Head

    return str(Head.from_json(read(since.read_text(encoding="utf-8"))).size)


def _code(verdict: Checked) -> int:
    return {
        "complete": exits.FINE,
        "open": exits.INCONCLUSIVE,
        "false": exits.FOUND,
        "unreadable": exits.USAGE,
    }[verdict.verdict]


# Signing the chain on record anew, for whoever has the key vouches for what is there.

WHO = "ldfi certificate adopt"
"""Who the audit names."""


def adopted() -> dict[str, dict[str, Any]]:
    """Sign the chain of each namespace as it is; return the heads by namespace, "" the default one.

    Raises Conflict where a chain does not follow from itself, or nobody has a key.
    """
    from ldfi.cli.extras import need
    from ldfi.cli.signing import signing
    from ldfi.experiments.cluster.config import Config
    from ldfi.experiments.store import chain, namespaces
    from ldfi.experiments.store.database import Database
    from ldfi.experiments.store.readonly import must_be_there
    from ldfi.experiments.telemetry import clock

    config = Config.load()
    url = config.database_url.get_secret_value()
    if url.startswith("postgresql"):
        need("postgresql")
    must_be_there(url)
    default = Database(url, signing(config))
    with default.read() as session:
        others = [each.name for each in namespaces.listed(session)]
    heads = {}
    for store in (default, *(namespaces.opened(url, default, name) for name in others)):
        with store.change(clock.now(), WHO) as change:
            heads[store.namespace] = chain.adopt(change).to_json()
        store.close()
    return heads
