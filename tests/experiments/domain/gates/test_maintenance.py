from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.errors import InvalidMaintenance
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.domain.traffic.patterns import matching, names_of

RATINGS = "api>http:GET:ratings.internal:8443/titles/*"
MARKS = "bookmarks>db:SELECT:recordsdb/marks"
LOOPBACK = "home>http:GET:127.0.0.1:8081/titles/*"
RANK = "home>function:rank"
CALLEES = {LOOPBACK: "titles"}

letters = st.text("ab*.>[?(", max_size=8)


@given(st.text())
def test_every_name_is_a_pattern_of_itself_in_any_case(name: str) -> None:
    assert matching([name], [name]) == name


@given(letters, letters)
def test_a_star_stands_for_anything_and_all_else_for_itself(pattern: str, name: str) -> None:
    assert (matching([pattern], [name]) is not None) == brute(pattern, name)


def brute(pattern: str, name: str) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(brute(pattern[1:], name[i:]) for i in range(len(name) + 1))
    return bool(name) and name[0] == pattern[0] and brute(pattern[1:], name[1:])


@pytest.mark.timeout(5)
def test_a_pattern_of_many_stars_takes_no_time() -> None:
    assert matching(["*" * 5000 + "b"], ["a" * 240]) is None
    assert matching(["*a" * 20 + "b"], ["a" * 240]) is None


def test_a_point_goes_by_its_name_its_caller_and_what_it_reaches() -> None:
    assert names_of(RATINGS, {}) == (RATINGS, "api", "ratings.internal:8443", "ratings.internal")
    loopback = (LOOPBACK, "home", "titles", "127.0.0.1:8081", "127.0.0.1")
    assert names_of(LOOPBACK, CALLEES) == loopback
    assert names_of(RANK, {}) == (RANK, "home")


def window(*down: str) -> Maintenance:
    return Maintenance("m1", "ada", "upgrade of the records database", down, 100.0, 200.0)


@pytest.mark.parametrize(
    ("down", "touched"),
    [
        ("recordsdb", "recordsdb"),
        ("Records*", "recordsdb"),
        ("bookmarks", "bookmarks"),
        ("titles", "titles"),
        ("ratings.internal", "ratings.internal"),
        (LOOPBACK, LOOPBACK),
        ("home>function:*", RANK),
        ("records", None),
        ("tit?es", None),
    ],
)
def test_what_is_down_is_found_among_the_points(down: str, touched: str | None) -> None:
    assert window(down).touches([RATINGS, MARKS, LOOPBACK, RANK], CALLEES) == touched


def test_nothing_named_pauses_everything() -> None:
    assert window().touches([], {}) == "everything"


def test_a_window_opens_and_ends_by_itself_or_earlier() -> None:
    open_window = window("recordsdb")
    closed = replace(open_window, closed_at=150.0)
    closed_late = replace(open_window, closed_at=250.0)

    assert [open_window.active(t) for t in (99.9, 100, 199.9, 200)] == [False, True, True, False]
    assert [closed.active(t) for t in (149.9, 150)] == [True, False]
    assert [closed_late.active(t) for t in (199.9, 200)] == [True, False]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"owner": " "}, "its owner"),
        ({"reason": ""}, "its reason"),
        ({"until": 100.0}, "ends after it opens"),
        ({"until": float("inf")}, "ends after it opens"),
        ({"until": float("nan")}, "ends after it opens"),
        ({"down": ("",)}, "empty pattern"),
    ],
)
def test_a_window_nobody_answers_for_is_refused(change: dict[str, object], told: str) -> None:
    with pytest.raises(InvalidMaintenance, match=re.escape(told)):
        replace(window("recordsdb"), **change)  # type: ignore[arg-type]
