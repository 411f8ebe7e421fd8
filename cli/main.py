"""``ldfi``: one command for each thing the service does."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Annotated

import typer

from ldfi.cli import exits
from ldfi.cli.commands import CommandGroup
from ldfi.cli.output import readers_may_leave
from ldfi.cli.secret import take_in_files
from ldfi.cli.usage import UsageError, explained
from ldfi.error_words import system
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
    """Run the command line; errors become a sentence each and an exit code.

    Being asked to terminate is like Ctrl-C: whatever a command started is stopped first.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    with readers_may_leave():
        code = _run()
        if sys.stdout is not None:
            sys.stdout.flush()
    sys.exit(code)


def _run() -> int:
    """Run the command; returns its exit code."""
    try:
        take_in_files(os.environ)
        code = app(standalone_mode=False, prog_name="ldfi")
    except UsageError as error:
        return _failed(explained(error), exits.USAGE)
    except Unreachable as error:
        return _failed(str(error), exits.UNREACHABLE)
    except LdfiError as error:
        return _failed(str(error), exits.USAGE)
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return _failed(f"{where}{system(error)}", exits.USAGE)
    except (KeyboardInterrupt, typer.Abort):
        return exits.INTERRUPTED
    return code if isinstance(code, int) else exits.FINE


def _failed(said: str, code: int) -> int:
    from rich.text import Text

    from ldfi.cli.terminal import console

    if said and _for_programs(sys.argv):
        typer.echo(json.dumps({"error": said, "exit_code": code}))
    if said:
        line = Text("ldfi: ", "bold red").append(said, "default")
        console(stderr=True).print(line, soft_wrap=True)
    return code


def _for_programs(words: Sequence[str]) -> bool:
    """Return whether a command was asked for JSON. What follows -- is another command's."""
    ours = words[: words.index("--")] if "--" in words else words
    return "--json" in ours


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
