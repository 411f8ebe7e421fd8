"""The page is whole, needs nothing from outside, and escapes what traces carry."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from ldfi.experiments.analyze.analysis import analyze
from ldfi.experiments.analyze.html import page

DATA = Path(__file__).parents[2] / "data"
_VOID = {"meta", "br"}


class Reader(HTMLParser):
    """Checks that tags are closed, and collects what is referred to."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _VOID:
            self.open.append(tag)
        self.references += [value or "" for name, value in attrs if name in {"src", "href"}]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Closed at once."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_self_contained() -> None:
    analysis = analyze([DATA])
    text = page(analysis, "<script>alert(1)</script>")
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    assert all(reference.startswith("#c") for reference in reader.references)
    assert "<script" not in text
    for each in analysis.classes:
        for fault in each.single_points:
            assert fault.partition("@")[2].replace(">", "&gt;") in text
