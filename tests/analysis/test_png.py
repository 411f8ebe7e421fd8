"""The picture for a chat says the worst first, in lines that fit, whatever names there are."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from typer.testing import CliRunner

from ldfi.analysis import png as drawing
from ldfi.analysis.analysis import analyze
from ldfi.analysis.png import SHARP, png, svg
from ldfi.analysis.summary import RedItem, ServiceCall, ServiceLine, Summary
from ldfi.cli.main import app
from ldfi.errors import Invalid

if os.environ.get("CI"):
    import resvg_py
else:
    resvg_py = pytest.importorskip("resvg_py")

TRACES = Path(__file__).parents[2] / "examples" / "traces"
SVG = "{http://www.w3.org/2000/svg}"


def size(picture: bytes) -> tuple[int, int]:
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    return int.from_bytes(picture[16:20], "big"), int.from_bytes(picture[20:24], "big")


def of(name: str) -> Summary:
    """A gist in which one service is red, whatever it is called."""
    red = RedItem((name,), name, 1, (f"{name} was lost",), ())
    services = (ServiceLine("api", "untried"), ServiceLine(name, "lost"))
    calls = (ServiceCall("api", name, 1, 0),)
    return Summary(name, "", "", (), (), (), 0, (red,), (), 0, services, calls)


def test_it_says_what_the_report_says_first() -> None:
    summary = analyze([TRACES]).gist
    words = " ".join(ElementTree.fromstring(svg(summary)).itertext())  # noqa: S314  it is our own
    for said in (
        summary.headline,
        summary.masked[0].says,
        summary.red[0].name,
        summary.harmless[0].says,
    ):
        assert set(said.split()) <= set(re.split(r"\s+", words)), said
    assert all(each.name in words for each in summary.services)


def test_it_is_written_and_as_large_as_it_is_drawn(tmp_path: Path) -> None:
    file = tmp_path / "report.png"
    shown = CliRunner().invoke(app, ["analyze", str(TRACES), "--png", str(file)])
    assert (shown.exit_code, f"Picture written to {file}." in shown.output) == (0, True)
    root = ElementTree.fromstring(svg(analyze([TRACES]).gist))  # noqa: S314
    drawn = int(root.attrib["width"]), int(root.attrib["height"])
    assert size(file.read_bytes()) == (drawn[0] * SHARP, drawn[1] * SHARP)


def test_it_has_words_and_red(tmp_path: Path) -> None:
    """Pixels, since an SVG that nobody can draw is right as well."""
    image = pytest.importorskip("PIL.Image")
    file = tmp_path / "report.png"
    file.write_bytes(png(analyze([TRACES]).gist))
    with image.open(file) as opened:
        seen = {colour for _, colour in opened.convert("RGB").getcolors(1 << 24)}
    assert {(0x17, 0x20, 0x2A), (0xB3, 0x26, 0x1E), (0x1B, 0x6E, 0x3C)} <= seen


@given(st.text("ab <&\"'库", min_size=1, max_size=200).filter(str.strip))
def test_every_line_fits_and_no_letter_is_lost(name: str) -> None:
    root = ElementTree.fromstring(svg(of(name)))  # noqa: S314
    texts = list(root.findall(f"{SVG}text"))
    for each in texts:
        wide = 0.6 * int(each.attrib["font-size"]) * cell_len(each.text or "")
        assert wide <= drawing.COLUMN
    written = "".join("".join(each.itertext()) for each in texts)
    assert "".join(name.split()) in "".join(written.split())


def test_a_machine_without_fonts_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = partial(resvg_py.svg_to_bytes, skip_system_fonts=True)
    monkeypatch.setattr(resvg_py, "svg_to_bytes", drawn)
    with pytest.raises(Invalid, match="no font"):
        png(of("api"))
