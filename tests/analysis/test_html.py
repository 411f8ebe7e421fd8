"""The page is whole, needs nothing from outside, escapes what traces carry, and fits a phone."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ldfi.analysis.analysis import analyze
from ldfi.analysis.html import page
from tests.analysis.spans import analysed, asked, entered

DATA = Path(__file__).parents[1] / "data"
_VOID = {"meta", "br"}
PHONE = 390


class Reader(HTMLParser):
    """Checks that tags are closed, and collects what is referred to and how it is drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.policy = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _VOID:
            self.open.append(tag)
        self._take(tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Closed at once."""
        self._take(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def _take(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.append((tag, given))
        self.references += [given[name] for name in ("src", "href") if name in given]
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    return reader


def test_the_page_is_whole_and_self_contained() -> None:
    analysis = analyze([DATA])
    text = page(analysis, "<script>alert(1)</script>")
    reader = read(text)
    assert reader.open == []
    assert all(reference.startswith("#c") for reference in reader.references)
    assert "<script" not in text
    for each in analysis.classes:
        for fault in each.single_points:
            assert fault.partition("@")[2].replace(">", "&gt;") in text


def test_its_policy_lets_nothing_in_but_its_own_style() -> None:
    text = page(analyze([DATA]))
    reader = read(text)
    style = text.partition("<style>")[2].partition("</style>")[0]
    digest = b64encode(sha256(style.encode()).digest()).decode()
    assert "default-src 'none'" in reader.policy
    assert f"style-src 'sha256-{digest}'" in reader.policy
    assert "unsafe" not in reader.policy
    assert not [tag for tag, given in reader.tags if "style" in given]
    assert not [name for _, given in reader.tags for name in given if name.startswith("on")]
    assert "url(" not in style


def test_it_says_what_the_gist_says() -> None:
    names = ["hotrod-faults.otlp.jsonl.gz", "hotrod-faults.outcomes.jsonl"]
    analysis = analyze([DATA / name for name in names])
    text, summary = unescape(page(analysis)), analysis.gist
    assert f"<h1>{summary.headline}</h1>" in text
    assert summary.lead in text
    said = [*(each.says for each in summary.masked), *(each.says for each in summary.harmless)]
    said += [*(each.says for each in summary.lost), *(each.says for each in summary.classes)]
    said += [line for each in summary.red for line in (each.name, *each.reasons, *each.advice)]
    assert summary.masked
    assert summary.harmless
    assert all(line in text for line in said)


def test_without_outcomes_it_says_that_they_are_missing() -> None:
    analysis = analyze([DATA / "hotrod-faults.otlp.jsonl.gz"])
    text = page(analysis)
    assert analysis.gist.missing in text
    assert text.count("harmless") - text.count(".harmless") == 1


@pytest.mark.parametrize("name", [p.name for p in sorted(DATA.iterdir()) if ".md" not in p.name])
def test_no_call_is_named_twice_in_red(name: str) -> None:
    analysis = analyze([DATA / name])
    text = unescape(page(analysis))
    named = re.findall(r'<b class="red">(.*?)</b>', text)
    assert named == [each.name for each in analysis.gist.red]
    assert len(named) == len(set(named))


def test_two_addresses_of_one_service_are_one_call_in_red(tmp_path: Path) -> None:
    # Given a service that is called at two addresses by the same path
    requests = []
    for host in ("10.0.0.1:81", "10.0.0.2:82"):
        served = asked(host, 1, 9)
        answer = type(served)("ratings", 1, kind=2, start=2, end=3)
        requests += [[entered("/home"), served, answer]] * 5
        requests += [[entered("/home", failed=True), asked(host, 1, 9, failed=True)]]
    summary = analysed(tmp_path, requests).gist
    (item,) = summary.red
    assert item.name == "api → ratings: GET /"
    assert item.points == ("api>http:GET:10.0.0.1:81/",)
    assert item.lost == 2


def test_nothing_in_it_is_wider_than_a_phone() -> None:
    # Given names far longer than a phone is wide, on top of what there is
    text = page(analyze([DATA]))
    reader = read(text)
    style = text.partition("<style>")[2].partition("</style>")[0]
    # Then nothing has a width of its own, long words break, and pictures shrink
    assert "overflow-wrap:anywhere" in style
    assert "nowrap" not in style
    assert not {"table", "pre", "img"} & {tag for tag, _ in reader.tags}
    assert not [w for w in re.findall(r"(?<!max-)(?<!-)width:(\d+)px", style) if int(w) > PHONE]
    drawn = [given for tag, given in reader.tags if tag == "svg"]
    assert drawn
    assert all("width" not in given and "viewbox" in given for given in drawn)
    assert "prefers-color-scheme:dark" in style


def test_names_in_traces_are_escaped(tmp_path: Path) -> None:
    evil = "<img src=x>"
    requests = [[entered("/home", service=evil), asked("ads")]] * 6
    requests += [[entered("/home", service=evil, failed=True), asked("ads", failed=True)]]
    text = page(analysed(tmp_path, requests))
    assert "<img" not in text
    assert "&lt;img" in text
