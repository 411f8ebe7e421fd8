"""Names stay whole, wherever they are printed."""

from __future__ import annotations

import io
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ldfi.analysis.progress import progress_on
from ldfi.cli import demo_view
from ldfi.cli.terminal import Card, columns, console

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


def test_there_is_one_console() -> None:
    """Any other would take names for markup or emoji, and cut them at 80 columns in a pipe."""
    own = {
        path.name
        for path in (Path(__file__).parents[2] / "cli").glob("*.py")
        if re.search(r"\bConsole\(", path.read_text(encoding="utf-8"))
    }
    assert own == {"terminal.py"}


HOSTILE = "api>http:GET:a/:x:/[red]/[/nothing]"


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """However wide the terminal of those who test is."""
    monkeypatch.setenv("COLUMNS", "200")


def _shown(picture: object, **options: bool) -> str:
    at = console(**options)
    with at.capture() as shown:
        at.print(picture)
    return shown.get()


def test_names_are_neither_emoji_nor_markup() -> None:
    facts = Card()
    facts.add_row("point", HOSTILE)
    table = columns("point")
    table.add_row(HOSTILE)
    for picture in (HOSTILE, facts, table):
        assert HOSTILE in _shown(picture)
    assert ":x: bold" in _shown(":x: [bold]bold[/]", markup=True)


def test_the_demo_takes_names_as_they_are() -> None:
    running = {"name": HOSTILE, "open": 1, "running": {"hypothesis": [f"down@{HOSTILE}"]}}
    assert _shown(demo_view.foot({"classes": [running]}, 0)).count(HOSTILE) == 1
    row = {"class": HOSTILE, "faults": [HOSTILE], "weakness": HOSTILE, "found": False}
    told = {"experiments": 0, "devices": {"reached": 0, "hurt": 0}, "seconds": 1.0}
    first, *_ = demo_view.sentences({"comparison": [row], "matched": False, **told})
    assert _shown(first).count(HOSTILE) == 1


def test_a_file_that_is_read_is_shown_by_its_name() -> None:
    at = Console(file=io.StringIO(), force_terminal=True, width=100, _environ={})
    with progress_on(at) as update:
        update(Path("[red]:x:.json"), 1)
        time.sleep(0.2)
        update(Path("[red]:x:.json"), 2)
        time.sleep(0.2)
    assert isinstance(at.file, io.StringIO)
    assert "[red]:x:.json" in at.file.getvalue()


@given(st.integers(20, 140), st.lists(st.text("ab c", min_size=1, max_size=70), max_size=4))
def test_words_are_whole_where_there_is_room(width: int, cells: list[str]) -> None:
    table = columns(*(f"c{index}" for index in range(len(cells) + 1)), whole=0)
    table.add_row("first", *cells)
    at = Console(file=io.StringIO(), width=width)
    at.print(table)
    assert isinstance(at.file, io.StringIO)
    printed = at.file.getvalue().split()
    for word in " ".join(cells).split():
        if len(word) <= width - 10:
            assert word in printed
