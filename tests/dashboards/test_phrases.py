"""Sentences that people read who have never heard of an injection point."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.dashboards.phrases import (
    said_difference,
    said_fault,
    said_outcome,
    said_point,
    said_predicate,
    said_together,
)
from ldfi.dashboards.words import listed
from ldfi.fit.predicate import Condition, Predicate


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
    assert said_together(["error@a>function:f", "down@db"]) == "a's f() fails and all of db is down"


def test_lists() -> None:
    assert [listed(["a", "b", "c"][:n]) for n in range(4)] == [
        "nothing",
        "a",
        "a and b",
        "a, b and c",
    ]


def test_predicates() -> None:
    predicate = Predicate.of(
        [
            Condition("method", "GET"),
            Condition("path", "/boot"),
            Condition("query.page", None, negated=True),
            Condition("header.x-device-type", "tv", negated=True),
        ]
    )
    assert said_predicate(Predicate()) == "Every request."
    assert said_predicate(predicate) == (
        "Requests in which the header “x-device-type” is not tv, the method is GET, the path is "
        "/boot and there is no query parameter “page”."
    )


def test_what_sets_a_class_apart() -> None:
    videos = [Condition("path", "/m"), Condition("falcor.videos")]
    assert said_difference(Predicate.of(videos)) == "path prefix “videos”"
    assert said_predicate(Predicate.of(videos)) == (
        "Requests in which there is a path prefix “videos” and the path is /m."
    )
    by = [Condition("device", "tv", negated=True), Condition("query.page", None, negated=True)]
    assert said_difference(Predicate.of(by)) == "device type not tv, no query parameter “page”"
    assert said_difference(Predicate.of([Condition("method", "GET")])) == ""


def arm(devices: int, failures: int) -> dict[str, Any]:
    return {"devices": devices, "failures": failures}


def test_outcomes() -> None:
    assert said_outcome({}) == ""
    assert said_outcome({"control": arm(9, 0), "treatment": arm(0, 0)}) == ""
    assert said_outcome({"control": arm(13, 0), "treatment": arm(11, 11)}) == (
        "All 11 devices that met these failures did not get what they asked for; of 13 devices "
        "that did not meet them, none failed."
    )
    assert said_outcome({"control": arm(9, 0), "treatment": arm(5, 0)}) == (
        "Of 5 devices that met these failures, all got what they asked for; of 9 devices that "
        "did not meet them, none failed."
    )
    assert said_outcome({"control": arm(20, 1), "treatment": arm(20, 19)}) == (
        "19 of 20 devices that met these failures did not get what they asked for; of those that "
        "did not meet them, 1 of 20 devices failed as well."
    )


@given(st.text(), st.sampled_from(["error", "delay", "down", "", "x"]))
def test_no_name_is_too_odd(text: str, kind: str) -> None:
    assert isinstance(said_fault(f"{kind}@{text}"), str)
    assert isinstance(said_point(text), str)
