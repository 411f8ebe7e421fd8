"""``ldfi explore``: a test of any language, under every combination of failures worth trying."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ldfi.cli import exits
from ldfi.cli.control import AsJson
from ldfi.cli.usage import likely

RUN = "run"


class ExploreGroup(TyperGroup):
    """A group that can be left out: ``ldfi explore --target URL -- COMMAND`` is ``explore run``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the subcommand in where it was left out."""
        if args and args[0] not in {*self.commands, "--help"} and not likely(args[0], self):
            args = [RUN, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=ExploreGroup,
    no_args_is_help=True,
    help="Run a functional test of any language under every combination of failures worth trying.",
)

Receive = Annotated[
    str,
    typer.Option(
        envvar="LDFI_RECEIVE",
        help="Receive the services' spans here: HOST:PORT, OTLP over HTTP or gRPC.",
    ),
]
DEFAULT = "127.0.0.1:4318"


class Form(StrEnum):
    """In whose words the block is written."""

    SHELL = "shell"
    COMPOSE = "compose"
    KUBERNETES = "kubernetes"


@app.command(RUN)
def run(
    command: Annotated[
        list[str], typer.Argument(help="The test, behind `--`. Exit code 0: all is good.")
    ],
    target: Annotated[str, typer.Option(help="Where the system under test answers.")],
    listen: Annotated[
        str,
        typer.Option(
            help="Where the command reaches it through us: HOST:PORT or :PORT. The command finds it"
            " in LDFI_TARGET, too."
        ),
    ] = "127.0.0.1:0",
    receive: Receive = DEFAULT,
    max_size: Annotated[int, typer.Option(help="Faults at once.", min=1, max=4)] = 2,
    kind: Annotated[
        str, typer.Option(help="How calls fail, with commas between: refused,status:500.")
    ] = "error",
    each_kind: Annotated[
        bool,
        typer.Option(
            "--each-kind",
            help="Try what was found to hurt with its other kinds, too; else they are presumed to"
            " hurt.",
        ),
    ] = False,
    delay: Annotated[
        float, typer.Option(help="Seconds that a delay hangs, at the longest.")
    ] = 10.0,
    protected: Annotated[
        list[str] | None, typer.Option(help="Never make points fail that match this pattern.")
    ] = None,
    asserted: Annotated[
        list[str] | None,
        typer.Option(
            "--assert",
            help="What every answer must be besides: status==200, json.items, json.total==3.",
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(help="What an address is called: 127.0.0.1:8081=ratings."),
    ] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds for all runs.")] = 300.0,
    seed: Annotated[int, typer.Option(help="The order of what is tried.")] = 0,
    report: Annotated[
        Path | None, typer.Option(help="Write JSON here, Markdown and scenarios beside it.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit's XML here.")] = None,
    lessons: Annotated[
        Path | None,
        typer.Option(
            help="Keep runs that were survived in this folder, and do not make them again while"
            " nothing has changed of what --code declares."
        ),
    ] = None,
    code: Annotated[
        list[str] | None,
        typer.Option(
            help="What a service is made of: ratings=services/ratings, or a digest of its image;"
            " of the test itself just the path."
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            help="Runs at a time, each with an address of its own in LDFI_TARGET.", min=1, max=64
        ),
    ] = 1,
    back_off: Annotated[
        float,
        typer.Option(
            envvar="LDFI_BACK_OFF",
            help="Seconds for which services that ran before may keep from exporting, as nobody"
            " listened then (gRPC: 144). Waited for only where spans are missing; 0: never.",
            min=0.0,
            max=3600.0,
        ),
    ] = 150.0,
    as_json: AsJson = False,
) -> None:
    """Run a functional test of any language under every combination of failures worth trying.

    The services must be told our keys and where to export: `ldfi explore env` prints that. Exit
    codes: 0 nothing hurts, 1 something does, 3 it cannot be said.
    """
    from ldfi.cli.explore_run import ExploreWanted, explored_by
    from ldfi.explore.external.assertions import AnswerAssertion
    from ldfi.explore.pytest.marker import Bounds
    from ldfi.explore.pytest.report import as_told

    bounds = Bounds.of(
        (),
        {
            "max_size": max_size,
            "kinds": tuple(kind.split(",")),
            "each_kind": each_kind,
            "delay": delay,
            "protected": tuple(protected or ()),
            "time_limit": time_limit,
        },
        seed,
    )
    wanted = ExploreWanted(
        tuple(command),
        target,
        listen,
        receive,
        bounds,
        tuple(map(AnswerAssertion.parse, asserted or ())),
        _names(name or []),
        report,
        junit,
        fixed=receive != DEFAULT,
        survived_files=lessons,
        code=_code(code or []),
        workers=workers,
        back_off=back_off,
    )
    document = explored_by(wanted, quiet=as_json)
    if as_json:
        typer.echo(json.dumps(as_told(document)))
    codes = {"harmful": exits.FOUND, "tolerated": exits.FINE}
    raise typer.Exit(codes.get(document["verdict"], exits.INCONCLUSIVE))


@app.command("env")
def env(
    form: Annotated[
        Form, typer.Option("--for", help="Whose words: a shell's, compose's, Kubernetes'.")
    ] = Form.SHELL,
    receive: Receive = DEFAULT,
    endpoint: Annotated[
        str | None,
        typer.Option(help="The URL by which services reach that address, where we cannot tell."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print what services must be told so that a test can be explored, and the test as well.

    In a shell: eval "$(ldfi explore env)", then start the services and the test from it.
    FIT_KEYS is kept where it is set already.
    """
    from ldfi.explore.external import environment
    from ldfi.explore.external.receiver import split
    from ldfi.explore.external.stamp import SharedKeys

    host, port = split(receive)
    if form is not Form.SHELL:
        host = "host.docker.internal"
    elif host == "0.0.0.0":  # noqa: S104
        host = "127.0.0.1"
    if form is Form.KUBERNETES and endpoint is None:
        raise typer.BadParameter(
            "give the URL by which pods reach us, say http://ldfi.test.svc:4318",
            param_hint="--endpoint",
        )
    block = environment.variables(SharedKeys.of_environment(), endpoint or f"http://{host}:{port}")
    if form is Form.SHELL:
        block |= {environment.RECEIVE: receive}
    written = {
        Form.SHELL: environment.as_shell,
        Form.COMPOSE: environment.as_compose,
        Form.KUBERNETES: environment.as_kubernetes,
    }
    typer.echo(json.dumps(block) if as_json else written[form](block))


def _code(given: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in given:
        name, equals, what = text.partition("=")
        found.setdefault(name if equals else "", []).append(what if equals else text)
    return found


def _names(given: list[str]) -> dict[str, str]:
    found = {}
    for text in given:
        address, equals, name = text.partition("=")
        if not equals or not address or not name:
            raise typer.BadParameter(
                f"{text!r} is no ADDRESS=NAME, as in 127.0.0.1:8081=ratings", param_hint="--name"
            )
        found[address] = name
    return found
