"""``ldfi``: one command for each thing the service does."""

from __future__ import annotations

import signal
import sys
from types import FrameType

import typer
from rich.console import Console

from experiments.cli import analyze, certificate, config, control, demo, exits, export, serve, token
from experiments.errors import Unreachable
from fit.errors import LdfiError

app = typer.Typer(
    name="ldfi",
    help="Finds the combinations of failures that hurt users, before they happen.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("serve")(serve.serve)
app.command("analyze")(analyze.analyze)
app.add_typer(certificate.app, name="certificate")
app.add_typer(export.app, name="export")
app.add_typer(config.app, name="config")
app.add_typer(token.app, name="token")
app.command("findings")(control.findings)
app.command("halt")(control.halt)
app.command("resume")(control.resume)


def main() -> None:
    """Run the command line; our own errors become one line and an exit code.

    Being asked to terminate is like Ctrl-C: whatever a command started is stopped first.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        app()
    except Unreachable as error:
        _fail(error, exits.UNREACHABLE)
    except LdfiError as error:
        _fail(error, exits.USAGE)


def _fail(error: LdfiError, code: int) -> None:
    Console(stderr=True).print(f"[bold red]ldfi:[/] {error}", highlight=False)
    sys.exit(code)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
