"""Draws the house: which room may import which, as pyproject.toml has import-linter check it.

python docs/house.py            writes docs/house.svg
python docs/house.py --check    exit code 1 when it is not what pyproject.toml says
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "house.svg"
WIDTH, MARGIN, GAP, PAD = 1000, 24, 8, 10
LINE = 16
WIDE, BESIDE = 600, 124
"""A box wider than this has its words beside its name."""
LETTER = 6.3
"""What a letter of the small print takes, on the safe side."""

OURS = {
    "ldfi.experiments": "the rooms of experiments are stacked",
    "ldfi.experiments.domain": "the domain is stacked",
}
"""Rooms with rooms inside, and the contract that stacks those."""

STYLE = """
text { font-family: system-ui, "DejaVu Sans", sans-serif; fill: #1b2430 }
.name { font-weight: 700; font-size: 15px }
.words { font-size: 12px; fill: #4a5766 }
.room { fill: #ffffff; stroke: #8a97a6 }
.holds { fill: #eaf0f7; stroke: #5b7fa6 }
.beside { fill: #ffffff; stroke: #8a97a6; stroke-dasharray: 5 4 }
"""


def contracts() -> dict[str, list[list[str]]]:
    """Read the layers of each contract that has any: rows of rooms, the highest first."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        listed = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    return {
        each["name"]: [[room.strip() for room in row.split("|")] for row in each["layers"]]
        for each in listed
        if each["type"] == "layers"
    }


def words_of(room: str) -> str:
    """Return what a room holds, as the first line of its docstring does."""
    path = ROOT.joinpath(*room.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    said = (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n")[0]
    said = re.sub(rf"^`*{room.rpartition('.')[2]}`*: ", "", said, flags=re.IGNORECASE)
    said = re.sub(r":\w+:`([^`]*)`", r"\1", said).replace("``", "")
    return said[:1].upper() + said[1:]


class Drawing:
    """Rows of boxes, from the roof down; boxes in a row share its width."""

    def __init__(self) -> None:
        self.layers = contracts()
        self.parts: list[str] = []

    def rows(self, rows: list[list[str]], x: float, y: float, width: float) -> float:
        """Draw rows of rooms, each beneath the one before; return where they end."""
        for row in rows:
            each = (width - GAP * (len(row) - 1)) / len(row)
            height = max(self.height(room, each) for room in row)
            for place, room in enumerate(row):
                self.room(room, x + place * (each + GAP), y, each, height)
            y += height + GAP
        return y - GAP

    def inside(self, room: str) -> list[list[str]]:
        """List the rows of rooms inside a room, by their full names."""
        return [
            [f"{room}.{name}" for name in row] for row in self.layers.get(OURS.get(room, ""), [])
        ]

    def lines(self, room: str, width: float) -> list[str]:
        """Break what a room holds into lines that fit its box, beside its name or beneath it."""
        room_for = width - 2 * PAD - (BESIDE if width > WIDE else 0)
        return textwrap.wrap(words_of(room), int(room_for / LETTER))

    def head(self, room: str, width: float) -> float:
        """Measure what a box needs for its name and its words."""
        lines = len(self.lines(room, width)) + (width <= WIDE)
        return LINE * lines + 2 * PAD

    def height(self, room: str, width: float) -> float:
        """Measure a box: its name, its words, and the rooms inside."""
        inner = width - 2 * PAD
        inside = [
            max(self.height(name, (inner - GAP * (len(row) - 1)) / len(row)) for name in row) + GAP
            for row in self.inside(room)
        ]
        return self.head(room, width) + (sum(inside) - GAP + PAD if inside else 0)

    def room(self, room: str, x: float, y: float, width: float, height: float) -> None:
        """Draw a box with its name, its words, and the rooms inside."""
        rows = self.inside(room)
        kind = "holds" if rows else "beside" if room == "ldfi.demo" else "room"
        self.parts.append(
            f'<rect class="{kind}" x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" rx="6"/>'
        )
        at = y + PAD + 12
        self.text("name", x + PAD, at, room.rpartition(".")[2], room)
        beside, down = (BESIDE, 0) if width > WIDE else (0, LINE)
        for number, line in enumerate(self.lines(room, width)):
            self.text("words", x + PAD + beside, at + down + LINE * number, line)
        if rows:
            self.rows(rows, x + PAD, y + self.head(room, width), width - 2 * PAD)

    def text(self, kind: str, x: float, y: float, words: str, name: str = "") -> None:
        """Write a line. ``name``: of the room whose name it is."""
        mark = f' data-room="{name}"' if name else ""
        self.parts.append(
            f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}"{mark}>{escape(words)}</text>'
        )


def picture() -> str:
    """Draw all of it."""
    drawing = Drawing()
    rows = drawing.layers["rooms are stacked"]
    # The demo is in no layer: a contract of its own says that it sees fit and nothing else.
    beside = [[*row, "ldfi.demo"] if "ldfi.lineage" in row else row for row in rows]
    end = drawing.rows(beside, MARGIN, MARGIN, WIDTH - 2 * MARGIN) + MARGIN
    body = "\n".join(drawing.parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {end:.0f}" role="img" '
        f'aria-label="The rooms of ldfi: each may import those below it">\n'
        f"<style>{STYLE}</style>\n"
        f'<rect width="{WIDTH}" height="{end:.0f}" fill="#f7f9fb"/>\n{body}\n</svg>\n'
    )


def main() -> int:
    """Write the picture, or say that it is not in step."""
    drawn = picture()
    if "--check" not in sys.argv:
        PICTURE.write_text(drawn, encoding="utf-8")
    elif not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != drawn:
        sys.stderr.write("docs/house.svg is not what pyproject.toml says; run docs/house.py\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
