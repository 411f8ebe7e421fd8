"""How templates say times, shares and names."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from ldfi.dashboards.links import ours, to_class, to_subject, to_trace, web
from ldfi.dashboards.words import (
    ago,
    breakable,
    duration,
    failures_at_once,
    fault,
    moment,
    number,
    second,
    share,
    typed,
)


def test_a_time_is_utc_and_carries_itself_for_the_script() -> None:
    said = moment(1_767_225_600.0)
    assert said == (
        '<time datetime="2026-01-01T00:00:00Z" data-show="minute">2026-01-01 00:00 UTC</time>'
    )
    assert 'data-show="ago"' in ago(0)
    assert "00:00:01 UTC" in second(1)


@pytest.mark.parametrize("at", [None, 1e300, math.nan, math.inf])
def test_no_time_is_a_dash(at: float | None) -> None:
    assert moment(at) == "–"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (59.4, "59 s"), (60, "1 min"), (3_700, "1 h 1 min"), (90_061, "1 d 1 h")],
)
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_numbers_and_shares() -> None:
    assert [number(1_234_567), number(0.5)] == ["1,234,567", "0.50"]
    assert [share(0), share(0.05), share(0.3333), share(1)] == ["0 %", "5 %", "33.3 %", "100 %"]


@given(st.text())
def test_a_name_that_may_be_broken_is_escaped_and_loses_nothing(name: str) -> None:
    assert str(breakable(name)).replace("<wbr>", "") == str(escape(name))


@given(st.text(min_size=1))
def test_the_page_of_a_class_is_one_segment_of_a_path(name: str) -> None:
    try:
        to = to_class(name)
    except UnicodeEncodeError:
        return
    assert to.count("/") == 2
    assert not set("?#&<>\"' ") & set(to)


def test_what_an_audit_row_is_about_has_a_page_or_none() -> None:
    assert to_subject("campaign running", "c1") == "/campaigns/c1"
    assert to_subject("experiment armed", "e/1") == "/experiments/e%2F1"
    assert to_subject("finding open", "f1") == "/findings/f1"
    assert to_subject("halt", "") is None
    assert to_subject("token created", "t1") is None


@pytest.mark.parametrize("path", ["/", "/audit?kind=halt", "/classes/GET%20%2Fboot"])
def test_ours_stays(path: str) -> None:
    assert ours(path) == path


@pytest.mark.parametrize(
    "path", ["", "audit", "//x.example", "/\\x.example", "https://x", "/a\nb", "/a b", "/\t/x"]
)
def test_anything_else_is_the_overview(path: str) -> None:
    assert ours(path) == "/"


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        " javascript:alert(1)",
        "java\nscript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "//x.example/",
        "",
    ],
)
def test_only_web_pages_are_linked_to(url: str) -> None:
    assert web(url) is None
    assert to_trace(url + "{trace_id}", "https://x.example/") is None


def test_web_pages_are_linked_to() -> None:
    assert web("https://tracker.example.org/SHOP-42") == "https://tracker.example.org/SHOP-42"
    assert to_trace("https://jaeger.example/{trace_id}", "a/b") == "https://jaeger.example/a%2Fb"


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (1, "with one failure"),
        (2, "with two failures at once"),
        (7, "with 7 failures at once"),
    ],
)
def test_hypotheses_of_a_size(size: int, said: str) -> None:
    assert failures_at_once(size) == said


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("error@p", "p fails"),
        ("delay@p", "p hangs"),
        ("down@db", "db is down"),
        ("refused@p", "p is refused"),
        ("status:404@p", "p answers 404"),
        ("truncated@p", "p has its answer cut"),
        ("whatever@p", "whatever@p"),
        ("p", "p"),
    ],
)
def test_faults_of_every_kind_are_said(variable: str, said: str) -> None:
    assert fault(variable) == said


def test_what_is_to_be_typed_is_code_and_everything_is_escaped() -> None:
    assert typed("run `ldfi <x>`, or a`b") == "run <code>ldfi &lt;x&gt;</code>, or a`b"
