"""Names stay whole, wherever they are printed."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ldfi.experiments.cli.terminal import columns, console

NAMES = [f"api>http:GET:popular/top/of/the/week/in/{land}" for land in ("austria", "australia")]


def _listing() -> object:
    table = columns("finding", "state", "class", "faults")
    for number, name in enumerate(NAMES):
        table.add_row(f"{number}" * 8, "open", "GET /boot", name)
    return table


def _printed(width: int) -> str:
    at = Console(file=io.StringIO(), width=width)
    at.print(_listing())
    assert isinstance(at.file, io.StringIO)
    return at.file.getvalue()


def test_a_pipe_cuts_no_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    console().print(_listing())
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines[-2:]] == NAMES
    assert max(map(len, lines)) < 200


def test_rows_are_cards_where_a_table_would_be_squeezed() -> None:
    assert "\n\n" not in _printed(100).strip()
    first, second = _printed(60).strip().split("\n\n")
    assert [line.split()[0] for line in first.splitlines()] == [
        "finding",
        "state",
        "class",
        "faults",
    ]
    assert NAMES[1] in second


@given(st.integers(30, 140))
def test_nothing_is_wider_than_the_terminal_and_nothing_is_lost(width: int) -> None:
    printed = _printed(width)
    assert max(map(len, printed.splitlines())) <= width
    letters = "".join(printed.split())
    for number, name in enumerate(NAMES):
        assert f"{number}" * 8 in letters
        assert all(part in letters for part in name.split("/"))
