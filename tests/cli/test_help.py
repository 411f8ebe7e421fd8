"""``--help`` of every command there is, as a narrow terminal shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from ldfi.cli.commands import COMMANDS, CommandGroup, Listed
from ldfi.cli.main import app

READABLE = 30
"""Columns that a text has at least: five words of plain English."""


def tree(words: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """A command and all below it, by what one types."""
    command = command.row.command() if isinstance(command, Listed) else command
    yield words, command
    if isinstance(command, TyperGroup):
        for name, below in command.commands.items():
            yield from tree((*words, name), below)


TREE = dict(tree((), get_command(app)))


def shown(words: tuple[str, ...], columns: int) -> str:
    result = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": str(columns)})
    assert result.exit_code == 0, result.output
    return result.output


def said(command: Any) -> Iterator[tuple[str, str]]:
    """Each option, argument and command below one, and the first paragraph of what it is for."""
    with command.make_context("ldfi", [], resilient_parsing=True) as context:
        for each in command.get_params(context):
            if record := each.get_help_record(context):
                yield record
        if isinstance(command, TyperGroup):
            for name, below in command.commands.items():
                yield name, (below.help or "").split("\n\n")[0]


def opening(text: str) -> str:
    """The words that end within the first columns of a readable one."""
    words = text.split()
    while len(" ".join(words)) > READABLE:
        words.pop()
    return " ".join(words)


def test_the_tree_is_all_there_is() -> None:
    assert isinstance(TREE[()], CommandGroup)
    assert {("campaign", "start"), ("export", "curl"), ("halt",)} <= set(TREE)
    assert len(TREE) > 50


def test_the_list_has_a_panel_for_each_kind_of_work() -> None:
    listed = shown((), 60)
    panels = dict.fromkeys(row.panel for row in COMMANDS)
    places = [listed.index(f"╭─ {panel} ─") for panel in panels]
    assert places == sorted(places)
    assert "─ Commands ─" not in listed
    assert "…" not in listed


@pytest.mark.parametrize("columns", [60, pytest.param(80, marks=pytest.mark.long)])
@pytest.mark.parametrize("words", TREE, ids=" ".join)
def test_help_is_readable_on_a_narrow_terminal(words: tuple[str, ...], columns: int) -> None:
    printed = shown(words, columns)
    lines = [" ".join(line.strip(" │").split()) for line in printed.splitlines()]
    whole = " ".join(lines).split()

    assert max(map(len, printed.splitlines())) <= columns, printed
    told, help_text = dict(said(TREE[words])), TREE[words].help or ""
    written = " ".join((help_text, *told.values())).split()
    assert " ".join(help_text.split()) in " ".join(whole)
    assert {word for word in whole if "…" in word} <= set(written)
    for name, text in told.items():
        assert any(line.startswith(name) for line in lines), (name, printed)
        assert any(opening(text) in line for line in lines), (text, printed)
        assert set(text.split()) <= set(whole), (text, printed)


def test_a_wide_terminal_has_what_an_option_does_beside_it() -> None:
    (line,) = (each for each in shown(("halt",), 120).splitlines() if "--help" in each)
    assert "Show this message and exit." in line
