"""The commands of ``ldfi``, one row each, and how a row becomes a command when it is called.

A command line that imports everything to print a list of words is slow, so a row knows what the
list shows, and its module is imported when the command itself is called, or asked for its help.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from ldfi.cli.help import HelpedCommand, HelpedGroup, readable
from ldfi.cli.local_time import with_utc

PACKAGE: Final = "ldfi.cli"


@dataclass(frozen=True, slots=True)
class CommandRow:
    """A command or group: its name, where it is (``MODULE:NAME``), and the first words of its help,
    which the list of commands shows, in the ``panel`` that it belongs to."""

    name: str
    place: str
    help: str
    panel: str = ""

    def found(self) -> Callable[..., Any] | typer.Typer:
        """Import the function of a command, or the application of a group."""
        module, _, attribute = self.place.partition(":")
        found: Callable[..., Any] | typer.Typer
        found = getattr(import_module(f"{PACKAGE}.{module}"), attribute)
        return found

    def command(self) -> TyperCommand | TyperGroup:
        """Import it, and make of it what Typer runs."""
        found, holder = self.found(), typer.Typer(add_completion=False)
        holder.callback()(_nothing)  # without one, Typer takes a single command for the whole
        if isinstance(found, typer.Typer):
            holder.add_typer(readable(found), name=self.name)
        else:
            holder.command(self.name, cls=HelpedCommand)(with_utc(found))
        command = get_group(holder).commands[self.name]
        if not isinstance(command, TyperCommand | TyperGroup):
            raise TypeError(f"{self.place} is no command")
        return command


def _nothing() -> None:
    """Do nothing: a group needs a function of its own."""


PANELS: Final[Mapping[str, tuple[CommandRow, ...]]] = {
    "First steps": (
        CommandRow("demo", "demo:demo", "Find the planted failures of a small shop, live."),
        CommandRow(
            "init",
            "init:init",
            "Make keys and tokens for every role, and print what each process must be told.",
        ),
        CommandRow(
            "serve",
            "serve:serve",
            "Run the service. It needs no other server. Everything else is set as `ldfi config`"
            " says.",
        ),
        CommandRow(
            "doctor",
            "doctor:doctor",
            "Say what is missing until campaigns can begin, and what to do about it.",
        ),
        CommandRow(
            "open",
            "open_page:open_page",
            "Open the web pages, or the page of one ID; print a link that logs a browser in, once.",
        ),
    ),
    "Without a service": (
        CommandRow(
            "analyze",
            "analyze:analyze",
            "Read traces; say what lost requests, what proved harmless, and what might still hurt.",
        ),
        CommandRow(
            "explore",
            "explore:app",
            "Run a functional test of any language under every combination of failures worth"
            " trying.",
        ),
        CommandRow(
            "replay",
            "replay:app",
            "Send recorded requests again: feed campaigns, measure a version, compare two.",
        ),
    ),
    "Find": (
        CommandRow(
            "campaign",
            "campaign:app",
            "Experiments over request classes until nothing is left to try.",
        ),
        CommandRow(
            "experiment",
            "experiment:app",
            "One hypothesis on one request class, beside a control group.",
        ),
        CommandRow("findings", "findings:app", "What hurts, and what has become of it."),
        CommandRow(
            "classes",
            "classes:classes",
            "List the request classes, the busiest first: their traffic, and what they rely on.",
        ),
        CommandRow(
            "whatif",
            "whatif:whatif",
            "Say what one more failure would do, from the evidence alone. Nothing is injected.",
        ),
        CommandRow(
            "loose",
            "loose_calls:app",
            "Calls that run in traces of their own: whose they are, as far as anybody knows.",
        ),
    ),
    "Stay safe": (
        CommandRow(
            "halt",
            "safety:halt",
            "Disarm everything at once. Nothing starts again before `ldfi resume`.",
        ),
        CommandRow(
            "was-it-us",
            "was_it_us:was_it_us",
            "Say whether anything was injected in a window of time, and what came of it.",
        ),
        CommandRow("resume", "safety:resume", "Let experiments start again after `ldfi halt`."),
        CommandRow(
            "status",
            "safety:status",
            "Show whether anything is halted or armed, and what the budgets have left.",
        ),
        CommandRow(
            "maintenance", "maintenance:app", "Windows in which what is down is left alone."
        ),
    ),
    "Prove and hand on": (
        CommandRow(
            "certificate", "certificate:app", "Certificates: what was proved, and what stayed open."
        ),
        CommandRow(
            "audit", "safety:audit", "List who did what, to what, why and when; newest first."
        ),
        CommandRow(
            "reproduce",
            "reproduce:reproduce",
            "Send a scenario's request, signed for your own device, with the faults and without.",
        ),
        CommandRow(
            "scenario", "scenario:app", "Scenario files: their format, and whether one is sound."
        ),
        CommandRow("export", "export:app", "Faults in the words of other tools."),
    ),
    "Run the service": (
        CommandRow("config", "config:app", "The configuration of the service."),
        CommandRow(
            "token",
            "token:app",
            "Bearer tokens: make, list, revoke. Needs a token of role admin.",
        ),
        CommandRow(
            "namespace",
            "namespace:app",
            "Several teams in one service, a namespace each. Needs an admin of the default one.",
        ),
        CommandRow(
            "prune",
            "prune:prune",
            "Delete old records that no finding or certificate needs.",
        ),
        CommandRow("streams", "streams:app", "The topics of Kafka: more partitions for them."),
    ),
}
"""The commands as `ldfi --help` shows them, in panels."""

COMMANDS: Final = tuple(replace(row, panel=panel) for panel, rows in PANELS.items() for row in rows)


class Listed(TyperCommand):
    """A command as far as the list shows it; the command itself is imported when it is called."""

    def __init__(self, row: CommandRow) -> None:
        super().__init__(row.name, help=row.help, rich_help_panel=row.panel)
        self.row = row

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Return the context of the command itself, which is run in its own context."""
        return self.row.command().make_context(*args, **kwargs)


class CommandGroup(HelpedGroup):
    """``ldfi``: the group of all rows."""

    def __init__(self, **attributes: Any) -> None:
        rows = {row.name: Listed(row) for row in COMMANDS}
        super().__init__(**{**attributes, "commands": rows})
