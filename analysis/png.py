"""The gist of an analysis as one picture for a chat: headline, what is worst, and the services.

It is drawn as SVG and turned into PNG by resvg, which takes the fonts of the machine. How wide a
text will be is only known to the font, so lines are broken for a wide one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from itertools import chain
from typing import Final

from rich.cells import cell_len

from ldfi.analysis.picture import MEANINGS, WIDTH, drawn
from ldfi.analysis.summary import Summary
from ldfi.errors import Invalid

EDGE: Final = 40
COLUMN: Final = 600
"""Of the text; the services stand beside it."""
SHARP: Final = 2
"""Pixels of the file to one of the drawing: chats show pictures on dense screens."""
KEY: Final = 22
"""The height of a line that says what a mark means."""
WORST: Final = 3
"""So many of each list: a picture is looked at, not read."""

FONTS: Final = "Noto Sans,DejaVu Sans,Liberation Sans,Segoe UI,Helvetica Neue,Helvetica,Arial"
"""Whatever of these there is; resvg knows no default of the machine's."""
FIXED: Final = "Noto Sans Mono,DejaVu Sans Mono,Liberation Mono,Consolas,Menlo,Courier New"
STYLE: Final = f"""
text{{font-family:{FONTS};fill:#17202a}}.graph text{{font-family:{FIXED},{FONTS};font-size:12px}}
"""
LOOKS: Final = """
.muted{fill:#566573}.red{fill:#b3261e;font-weight:700}
.amber{fill:#8a5a00}.green{fill:#1b6e3c}.head{font-weight:700}.bold{font-weight:700}
.graph .m{font-weight:700}
.e{fill:none;stroke:#566573;stroke-width:1.3;opacity:.6}
.s{fill:#fff;stroke:#566573;stroke-width:1.5}
.untried .s{stroke-dasharray:4 3}.silent .s{fill:#f6f7f9;stroke-width:3}
.unclear .s{stroke:#8a5a00;stroke-dasharray:1 3}
.lost .s{fill:#fbe9e7;stroke:#b3261e;stroke-width:2.5}
.harmless .s{fill:#e6f4ea;stroke:#1b6e3c}
"""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text: its look, the size of its letters, and the space above it, in pixels."""

    text: str
    look: str
    size: int
    above: int


def png(summary: Summary) -> bytes:
    """Draw the picture. Raises Invalid on a machine without fonts: it would have no words."""
    import resvg_py

    with_letter, without = (
        resvg_py.svg_to_bytes(svg_string=_sheet(text, 20, 20))
        for text in ('<text y="15">A</text>', "")
    )
    if with_letter == without:
        raise Invalid(f"this machine has no font to write with; install one of {FONTS}")
    picture: bytes = resvg_py.svg_to_bytes(svg_string=svg(summary), zoom=SHARP)
    return picture


def svg(summary: Summary) -> str:
    """Draw it as SVG: the text on the left, the services on the right where there are several."""
    lines, y = [], EDGE
    for line in _text(summary):
        y += line.above + line.size
        lines.append(
            f'<text class="{line.look}" x="{EDGE}" y="{y}" font-size="{line.size}">'
            f"{escape(line.text)}</text>"
        )
    width, height = EDGE + COLUMN + EDGE, y + EDGE
    if summary.calls:
        shapes, bottom = drawn(summary)
        key = list(_key(summary, bottom))
        lines.append(
            f'<g transform="translate({width} {EDGE})">'
            f'<g class="graph">{shapes}</g>{"".join(key)}</g>'
        )
        height = max(height, EDGE + bottom + KEY * len(key) + EDGE)
        width += WIDTH + EDGE
    return _sheet("".join(lines), width, height)


def _sheet(drawing: str, width: int, height: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">'
        f"<style>{STYLE}{LOOKS}</style>"
        f'<rect width="{width}" height="{height}" fill="#fff"/>{drawing}</svg>'
    )


def _text(summary: Summary) -> Iterator[Line]:
    """Return what the page says first, in its order."""
    yield from _broken("What would hurt your users · ldfi analyze", "muted", 14, 0)
    yield from _broken(summary.headline, "head", 34, 14)
    yield from _broken(summary.lead, "muted", 17, 16)
    yield from _broken(summary.missing, "amber", 15, 8)
    for hidden in summary.masked[:WORST]:
        yield from _broken(f"Hidden: {hidden.says}.", "", 16, 10)
    lost = [f"{each.service}  {each.says}" for each in summary.lost[:WORST]]
    yield from _list("Requests lost, by service", lost, len(summary.lost))
    worst = [(each.name, each.reasons[:1]) for each in summary.red[:WORST]]
    yield from _part("What is red, and why", len(summary.red))
    for name, reasons in worst:
        yield from _broken(name, "red", 16, 8)
        yield from chain.from_iterable(_broken(f"{why}.", "", 15, 3) for why in reasons)
    harmless = [f"✓ {each.says}" for each in summary.harmless[:WORST]]
    yield from _list("Your own traffic has proved harmless", harmless, len(summary.harmless))


def _list(title: str, items: Iterable[str], of: int) -> Iterator[Line]:
    yield from _part(title, of)
    for item in items:
        yield from _broken(item, "", 15, 8)


def _part(title: str, of: int) -> Iterator[Line]:
    if of:
        more = f" ({WORST} of {of})" if of > WORST else ""
        yield Line(f"{title}{more}", "bold", 18, 26)


def _key(summary: Summary, bottom: int) -> Iterator[str]:
    there = {each.standing for each in summary.services}
    for number, (mark, said) in enumerate(
        meaning for standing, meaning in MEANINGS.items() if standing in there
    ):
        y = bottom + KEY * (number + 1)
        yield f'<text class="muted" x="10" y="{y}" font-size="14">{mark}  {escape(said)}</text>'


def _broken(text: str, look: str, size: int, above: int) -> Iterator[Line]:
    """Break a text into lines that fit the column; a word that is longer than one is cut apart."""
    room = int(COLUMN / size / (0.68 if look in {"head", "red"} else 0.6))
    line = ""
    for word in text.split():
        if line and cell_len(line) + 1 + cell_len(word) > room:
            yield Line(line, look, size, above)
            line, above = word, size // 4
        else:
            line = f"{line} {word}".lstrip()
        while cell_len(line) > room:
            fits = next(n for n in range(len(line), 0, -1) if cell_len(line[:n]) <= room)
            yield Line(line[:fits], look, size, above)
            line, above = line[fits:], size // 4
    if line:
        yield Line(line, look, size, above)
