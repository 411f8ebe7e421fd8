"""``ldfi replay``: recorded requests, sent again: to feed campaigns, to measure, to compare."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ldfi.cli import exits
from ldfi.cli.control import HERE, AsJson, Url
from ldfi.cli.durations import seconds as length_of
from ldfi.cli.replay_records import export, record, schema
from ldfi.cli.replay_runs import compare, run
from ldfi.cli.secret import secret
from ldfi.cli.terminal import console
from ldfi.cli.usage import likely


class _FeedsByDefault(TyperGroup):
    """``ldfi replay FILE`` is ``ldfi replay feed FILE``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the word in where none of ours stands."""
        file = bool(args) and (Path(args[0]).exists() or not likely(args[0], self))
        if args and args[0] not in {*self.commands, "--help"} and file:
            args = ["feed", *args]
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed


app = typer.Typer(
    cls=_FeedsByDefault,
    help="Send recorded requests again: feed campaigns, measure a version, compare two.",
    no_args_is_help=True,
)
app.command("run")(run)
app.command("compare")(compare)
app.command("record")(record)
app.command("export")(export)
app.command("schema")(schema)


@app.command("feed")
def feed(
    file: Annotated[
        Path,
        typer.Argument(
            help="YAML with `exemplars` and an `assertion`, or a Chaos Toolkit experiment."
        ),
    ],
    target: Annotated[list[str], typer.Option(help="Where staging is: one URL.")],
    token: Annotated[
        str,
        typer.Option(
            envvar="LDFI_TOKEN",
            callback=secret,
            help="A token of role devices; @FILE, or - for standard input.",
            show_default=False,
        ),
    ],
    rate: Annotated[float, typer.Option(help="Requests a second, at most.", min=0.01)] = 5.0,
    devices: Annotated[int, typer.Option(help="Devices that are made up.", min=1)] = 200,
    length: Annotated[
        str | None, typer.Option("--for", help="Stop after so long: 90s, 10m. Else Ctrl-C.")
    ] = None,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Send exemplar requests to staging, report how they went: `ldfi replay FILE --target URL`.

    The outcomes go to the service, so that campaigns can explore a system that has no users.
    """
    from ldfi.cli.replay_traffic import Reporter, described, reached, read, run
    from ldfi.errors import InvalidReplay
    from ldfi.scenarios.replay import Replayer

    if len(target) > 1:
        raise InvalidReplay(
            "outcomes are reported of one target; `ldfi replay run` compares two of them"
        )
    exemplars, assertion, safe_methods = read(file)
    seconds = None if length is None else length_of(length, "--for")
    replayer = Replayer(target[0], exemplars, rate, devices, assertion, safe_methods)
    if assertion is None and not as_json:
        console(stderr=True).print(
            "No assertion: every status below 500 counts as success, and a 200 may hide an error."
        )
    counts = asyncio.run(run(replayer, Reporter(url, token), seconds, quiet=as_json))
    if as_json:
        typer.echo(json.dumps(counts))
    else:
        typer.echo("\n".join(described(counts)))
    raise typer.Exit(exits.FINE if reached(counts) else exits.INCONCLUSIVE)
