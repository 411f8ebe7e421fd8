"""Sentences that people read who have never heard of an injection point."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.analysis.phrases import (
    said_fault,
    said_outcome,
    said_point,
    said_shortly,
)


@pytest.mark.parametrize(
    ("point", "said"),
    [
        ("api>http:GET:ratings/titles/*", "api's call to ratings (GET /titles/*)"),
        ("api>http:GET:127.0.0.1:8081/top", "api's call to 127.0.0.1:8081 (GET /top)"),
        ("api>rpc:Get:prices/shop.Prices", "api's call to prices (Get /shop.Prices)"),
        ("api>db:SELECT:recordsdb/marks", "api's query to recordsdb (SELECT marks)"),
        ("api>cache:get:home", "api's look-up in the cache (get home)"),
        ("api>message:send:kafka/plays", "api's message to kafka (plays)"),
        ("home>function:rank", "home's rank()"),
        ("whatever that is", "whatever that is"),
        ("<b>bold</b>", "<b>bold</b>"),
    ],
)
def test_points(point: str, said: str) -> None:
    assert said_point(point) == said


def test_who_answered_is_said_rather_than_who_was_asked() -> None:
    point = "api>http:GET:127.0.0.1:8081/top"
    assert said_fault(f"error@{point}", {point: "ratings"}) == (
        "api's call to ratings (GET /top) fails"
    )


def test_kinds_of_fault() -> None:
    assert said_fault("error@a>function:f") == "a's f() fails"
    assert said_fault("error:2@a>function:f") == "a's f() fails"
    assert said_fault("refused@a>function:f") == "a's f() is refused"
    assert said_fault("status:404@a>function:f") == "a's f() answers 404"
    assert said_fault("sql:deadlock@a>function:f") == "a's f() meets the state “deadlock”"
    assert said_fault("delay@a>function:f") == "a's f() hangs"
    assert said_fault("delay:2@a>function:f") == "a's f() hangs"
    assert said_fault("delay:0.5..2@a>function:f") == "a's f() hangs for 0.5..2 s"
    assert said_fault("slow:2@a>function:f") == "a's f() takes 2 s to send its body"
    assert said_fault("slow:0.5..2@a>function:f") == "a's f() takes 0.5..2 s to send its body"
    assert said_fault("down@recordsdb") == "all of recordsdb is down"


def arm(devices: int, failures: int) -> dict[str, Any]:
    return {"devices": devices, "failures": failures}


def test_outcomes() -> None:
    assert said_outcome({}) == ""
    assert said_outcome({"control": arm(9, 0), "treatment": arm(0, 0)}) == ""
    assert said_outcome({"control": arm(13, 0), "treatment": arm(11, 11)}) == (
        "All 11 devices that met these failures did not get what they asked for; of 13 devices "
        "that did not meet them, none failed."
    )
    well = {"control": arm(9, 0), "treatment": arm(5, 0)}
    assert said_outcome(well, "tolerated") == (
        "Of 5 devices that met these failures, all got what they asked for; of 9 devices that "
        "did not meet them, none failed."
    )
    for counts, verdict in (
        (well, "inconclusive"),
        (well, None),
        ({**well, "hurt": 3}, "tolerated"),
        ({**well, "others": {"met": 2, "hurt": 1}}, "tolerated"),
    ):
        assert said_outcome(counts, verdict) == (
            "Of 5 devices that met these failures, none was seen to fail; of 9 devices that did "
            "not meet them, none failed."
        )
    assert said_outcome({"control": arm(20, 1), "treatment": arm(20, 19)}) == (
        "19 of 20 devices that met these failures did not get what they asked for; of those that "
        "did not meet them, 1 of 20 devices failed as well."
    )


@given(st.text(), st.sampled_from(["error", "delay", "down", "", "x"]))
def test_no_name_is_too_odd(text: str, kind: str) -> None:
    assert isinstance(said_fault(f"{kind}@{text}"), str)
    assert isinstance(said_point(text), str)


PLAYLIST, POPULAR = "api>http:GET:playlist/members/*", "api>http:GET:popular/top"


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ([f"error@{POPULAR}"], "popular fails"),
        ([f"refused@{POPULAR}"], "popular does not answer"),
        ([f"delay:0.5..2@{POPULAR}"], "popular is slow"),
        ([f"slow:2@{POPULAR}"], "popular takes 2 s to send its body"),
        ([f"status:503@{POPULAR}"], "popular answers 503"),
        (["down@recordsdb"], "recordsdb is down"),
        ([f"error@{PLAYLIST}", f"error@{POPULAR}"], "playlist and popular both fail"),
        ([f"refused@{PLAYLIST}", f"refused@{POPULAR}"], "playlist and popular do not answer"),
        (["down@recordsdb", f"error@{POPULAR}"], "recordsdb is down and popular fails"),
        (
            ["error@a>http:GET:b/x", "error@a>http:GET:b/y"],
            "b (GET /x) and b (GET /y) both fail",
        ),
        (["error@a>cache:get:hot"], "a's look-up in the cache (get hot) fails"),
        (["error@home>function:rank"], "home's rank() fails"),
        ([], "nothing fails"),
        ([f"error@s{n}" for n in range(4)], "s0, s1, s2 and 1 more all fail"),
        ([f"error@s{n}" for n in range(60)], "s0, s1, s2 and 57 more all fail"),
        (
            ["down@db", *(f"refused@s{n}" for n in range(59))],
            "db is down, s0 and s1 do not answer and 57 more",
        ),
    ],
)
def test_shortly(faults: list[str], said: str) -> None:
    assert said_shortly(faults) == said


def test_who_is_called_for_several_things_is_named_with_what() -> None:
    callees = {PLAYLIST: "lists", "api>http:GET:playlist/tops": "lists", POPULAR: "popular"}
    assert said_shortly([f"error@{PLAYLIST}"], callees) == "lists (GET /members/*) fails"
    assert said_shortly([f"error@{POPULAR}"], callees) == "popular fails"
