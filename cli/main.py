"""``ldfi``: one command for each thing the service does."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Annotated

import typer

from ldfi.cli import exits
from ldfi.cli.commands import CommandGroup
from ldfi.cli.secret import take_in_files
from ldfi.errors import LdfiError, Unreachable

app = typer.Typer(
    name="ldfi",
    cls=CommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"ldfi {version('ldfi')}")
        raise typer.Exit(exits.FINE)


@app.callback()
def ldfi(
    _asked: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Find the combinations of failures that hurt users, before they happen."""


def main() -> None:
    """Run the command line; our own errors become one line and an exit code.

    Being asked to terminate is like Ctrl-C: whatever a command started is stopped first.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        take_in_files(os.environ)
        app()
    except Unreachable as error:
        _fail(error, exits.UNREACHABLE)
    except LdfiError as error:
        _fail(error, exits.USAGE)


def _fail(error: LdfiError, code: int) -> None:
    from rich.text import Text

    from ldfi.cli.terminal import console

    line = Text("ldfi: ", "bold red").append(str(error), "default")
    console(stderr=True).print(line, soft_wrap=True)
    sys.exit(code)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
