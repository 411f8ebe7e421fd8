"""Request classes in sentences, for people who have never heard of a predicate."""

from __future__ import annotations

from ldfi.dashboards.map.class_story import said_difference, said_predicate
from ldfi.dashboards.words import listed
from ldfi.fit.protocol.predicate import Condition, Predicate


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
