"""``ldfi``: one command for each thing the service does."""

from __future__ import annotations

import signal
import sys
from types import FrameType

import typer
from rich.text import Text

from ldfi.experiments.cli import (
    analyze,
    campaign,
    certificate,
    classes,
    config,
    demo,
    exits,
    experiment,
    export,
    findings,
    maintenance,
    replay,
    reproduce,
    safety,
    scenario,
    serve,
    token,
    whatif,
)
from ldfi.experiments.cli.terminal import console
from ldfi.experiments.errors import Unreachable
from ldfi.fit.errors import LdfiError

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
app.command("replay")(replay.replay)
app.command("classes")(classes.classes)
app.add_typer(campaign.app, name="campaign")
app.add_typer(experiment.app, name="experiment")
app.add_typer(findings.app, name="findings")
app.add_typer(certificate.app, name="certificate")
app.command("whatif")(whatif.whatif)
app.add_typer(maintenance.app, name="maintenance")
app.command("halt")(safety.halt)
app.command("resume")(safety.resume)
app.command("status")(safety.status)
app.command("audit")(safety.audit)
app.command("reproduce")(reproduce.reproduce)
app.add_typer(scenario.app, name="scenario")
app.add_typer(export.app, name="export")
app.add_typer(config.app, name="config")
app.add_typer(token.app, name="token")


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
    line = Text("ldfi: ", "bold red").append(str(error), "default")
    console(stderr=True).print(line, soft_wrap=True)
    sys.exit(code)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
