"""``ldfi replay``: a class's exemplar requests, sent against staging again and again.

The outcomes go to the service, so that campaigns can explore a system that has no users.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ldfi.experiments.cli import exits
from ldfi.experiments.cli.control import HERE, AsJson, Url
from ldfi.experiments.cli.durations import seconds as length_of


def replay(
    file: Annotated[
        Path,
        typer.Argument(
            help="YAML with `exemplars` and an `assertion`, or a Chaos Toolkit experiment."
        ),
    ],
    target: Annotated[list[str], typer.Option(help="Where staging is: one URL.")],
    token: Annotated[
        str, typer.Option(envvar="LDFI_TOKEN", help="A token of role devices.", show_default=False)
    ],
    rate: Annotated[float, typer.Option(help="Requests a second, at most.", min=0.01)] = 5.0,
    devices: Annotated[int, typer.Option(help="Devices that are made up.", min=1)] = 200,
    length: Annotated[
        str | None, typer.Option("--for", help="Stop after so long: 90s, 10m. Else Ctrl-C.")
    ] = None,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Send exemplar requests against staging and report how they went."""
    from ldfi.experiments.cli.replaying import Reporter, described, reached, read, run
    from ldfi.experiments.errors import InvalidReplay
    from ldfi.experiments.scenarios.replay import Replayer

    if len(target) > 1:
        raise InvalidReplay(
            "outcomes are reported of one target; `ldfi replay run` compares two of them"
        )
    exemplars, assertion, safe_methods = read(file)
    seconds = None if length is None else length_of(length, "--for")
    replayer = Replayer(target[0], exemplars, rate, devices, assertion, safe_methods)
    if assertion is None and not as_json:
        Console(stderr=True).print(
            "No assertion: every status below 500 counts as success, and a 200 may hide an error.",
            highlight=False,
        )
    counts = asyncio.run(run(replayer, Reporter(url, token), seconds, quiet=as_json))
    if as_json:
        typer.echo(json.dumps(counts))
    else:
        typer.echo("\n".join(described(counts)))
    raise typer.Exit(exits.FINE if reached(counts) else exits.INCONCLUSIVE)
