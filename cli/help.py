"""``--help`` on a narrow terminal: what an option does stands below its name, as wide as there is
room. Beside the names, the types and their opposites it would be a column of a word or two."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from ldfi.cli.local_time import with_utc
from ldfi.cli.usage import MissingParameters, NoSuchCommand, UsageError, missing_of

INDENT: Final = 4
"""Columns before what is said of the name above."""


class HelpBelow:
    """A command whose help is readable on any terminal, and that names all that is missing."""

    def parse_args(self: Any, ctx: Any, args: list[str]) -> list[str]:
        """Parse. Raises MissingParameters with everything that is missing, not the first alone."""
        typed = list(args)
        try:
            parsed: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
        except UsageError as error:
            missing = missing_of(self, ctx, typed) if _is_missing(error) else []
            if missing:
                raise MissingParameters(missing, ctx) from None
            error.ctx = getattr(error, "ctx", None) or ctx  # type: ignore[attr-defined]
            raise
        return parsed

    def format_help(self: Any, ctx: Any, formatter: Any) -> None:
        """Print it in the one way or the other, by the width of the terminal."""
        from ldfi.cli.terminal import NARROW

        width = shutil.get_terminal_size().columns
        if width >= NARROW:
            super().format_help(ctx, formatter)  # type: ignore[misc]
        else:
            _print(self, ctx, width)


class HelpedCommand(HelpBelow, TyperCommand):
    """A command of ``ldfi``."""


class HelpedGroup(HelpBelow, TyperGroup):
    """A group of commands."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command. Raises NoSuchCommand, with the one that was probably meant."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            raise NoSuchCommand(args[0], self, ctx)
        return super().resolve_command(ctx, args)


def readable(found: typer.Typer) -> typer.Typer:
    """Have every command of an application, and of the groups in it, show its help so."""
    for command in found.registered_commands:
        if command.callback is not None:
            command.callback = with_utc(command.callback)
        command.cls = _with_help(command.cls or TyperCommand)
    for group in found.registered_groups:
        if group.typer_instance:
            readable(group.typer_instance)
    found.info.cls = _with_help(found.info.cls or TyperGroup)
    return found


def _with_help(kind: Any) -> Any:
    helped = HelpedGroup if issubclass(kind, TyperGroup) else HelpedCommand
    return kind if issubclass(kind, HelpBelow) else type(kind.__name__, (helped, kind), {})


def _is_missing(error: Exception) -> bool:
    return type(error).__name__ == "MissingParameter"


def _print(command: Any, ctx: Any, width: int) -> None:
    """Print what a command is for, then its arguments, options and commands in their panels."""
    from rich.padding import Padding
    from rich.panel import Panel

    from ldfi.cli.terminal import console

    at = console(width=width)
    at.print(Padding(f"Usage: {ctx.command_path} {' '.join(command.collect_usage_pieces(ctx))}", 1))
    at.print(Padding("\n\n".join(_paragraphs(command.help or "")), (0, 1, 1, 1)))
    for title, content in (*_parameters(command, ctx), *_commands(command, ctx)):
        at.print(Panel(content, title=title, title_align="left", border_style="dim"))


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield " ".join(paragraph.split())


def _parameters(command: Any, ctx: Any) -> Iterator[tuple[str, Any]]:
    """Make of each panel's parameters a line for the name, and below it what it means."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    panels: dict[str, list[Any]] = {}
    for each in command.get_params(ctx):
        record = each.get_help_record(ctx)
        if record is not None:
            usual = "Arguments" if each.param_type_name == "argument" else "Options"
            lines = panels.setdefault(getattr(each, "rich_help_panel", None) or usual, [])
            lines += [Text(record[0], "bold cyan"), Padding(record[1], (0, 0, 0, INDENT))]
    for title in sorted(panels, key=lambda title: title not in ("Arguments", "Options")):
        yield title, Group(*panels[title])


def _commands(command: Any, ctx: Any) -> Iterator[tuple[str, Any]]:
    """Make of each panel's commands a table: their names are short."""
    from rich.table import Table

    if not isinstance(command, TyperGroup):
        return
    listed = [command.get_command(ctx, name) for name in command.list_commands(ctx)]
    shown = [each for each in listed if each is not None and not each.hidden]
    widest = max((len(each.name or "") for each in shown), default=0)
    panels: dict[str, Table] = {}
    for each in shown:
        title = getattr(each, "rich_help_panel", None) or "Commands"
        if title not in panels:
            panels[title] = Table.grid(padding=(0, 2, 0, 0))
            panels[title].add_column(style="bold cyan", no_wrap=True, width=widest)
        first = next(_paragraphs(each.short_help or each.help or ""))
        panels[title].add_row(each.name, first)
    yield from panels.items()
