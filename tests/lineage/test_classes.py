"""Classes are found where an edge can tell requests apart, and marked unfit where it cannot."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.fit.protocol.predicate import Predicate
from ldfi.lineage.classes import discover
from ldfi.lineage.lineage import Lineage, learn_in_full
from ldfi.lineage.renaming import learned_names, renamed
from ldfi.lineage.shapes import EXEMPLARS, Shapes
from ldfi.testing.spans import lineage, span


def request(
    points: Iterable[str], query: str = "", status: str = "200", at: int = 1, path: str = "/t"
) -> Lineage:
    """A request that calls some points; those that start with ``!`` fail."""
    calls = [
        span(p.strip("!"), "root", failed=p[0] == "!", point=p.strip("!"), at=(at, at + 1))
        for p in points
    ]
    fields = {"method": "GET", "path": path, "query": query, "status": status}
    failed = None if status != "500" else True
    return lineage(span("root", kind="server", failed=failed, at=(at, at + 9), **fields), *calls)


def shapes(*groups: tuple[int, Lineage]) -> Shapes:
    collected = Shapes()
    for count, run in groups:
        for _ in range(count):
            collected.add(run)
    return collected


def test_requests_that_rely_on_the_same_points_are_one_class() -> None:
    (found,) = discover(shapes((50, request("ab")), (50, request("ab", query="page=1"))))
    assert str(found.predicate) == "GET /t"
    assert (found.consistency, found.unfit, found.sample) == (1.0, "", 100)
    assert found.expected == {"a", "b"}


def test_a_query_parameter_that_decides_splits_the_class() -> None:
    found = discover(
        shapes(
            (50, request("ab")),
            (30, request("abc", query="full=yes")),
            (20, request("ab", query="page=1")),
        )
    )
    assert {str(each.predicate): each.expected for each in found} == {
        "GET /t without query.full": {"a", "b"},
        "GET /t with query.full": {"a", "b", "c"},
    }
    assert all(each.consistency == 1 and not each.unfit for each in found)


def test_the_value_of_a_parameter_may_decide() -> None:
    found = discover(
        shapes(
            (50, request("a", query="kind=film")),
            (50, request("b", query="kind=series")),
            (10, request("a", query="kind=short")),
        )
    )
    assert {each.expected for each in found} == {frozenset("a"), frozenset("b")}
    features = request("b", query="kind=series").features
    (holding,) = [each for each in found if each.predicate.holds(features)]
    assert holding.expected == {"b"}
    assert Predicate.from_json(holding.predicate.to_json()) == holding.predicate


def test_every_request_belongs_to_exactly_one_class() -> None:
    collected = shapes(
        *((20, request("a" * (i % 2) + "b", query=f"k={i % 3}&l={i % 2}")) for i in range(6))
    )
    found = discover(collected)
    for shape in collected:
        assert sum(each.predicate.holds(shape.features) for each in found) == 1


def test_what_nothing_explains_varies_or_is_marked_unfit() -> None:
    # Given requests that rely on the one thing or on another
    (found,) = discover(shapes((86, request("ab")), (14, request("cd"))))
    assert "scatter: its 100 requests rely either on a (86%) or on c (14%)" in found.unfit
    # And requests like owners/6 and owners/99: one has pets and asks for their visits
    (found,) = discover(shapes((86, request("ab")), (14, request("a"))))
    assert (found.unfit, [part.share for part in found.parts]) == ("", [0.86])
    assert found.consistency == pytest.approx(0.86)
    assert found.hit_rate == pytest.approx(0.93)


def test_a_consumer_that_is_now_quicker_and_now_slower_than_the_request_scatters_nothing() -> None:
    def order(done: int, *points: str) -> Lineage:
        return lineage(
            span("root", kind="server", at=(0, 9), method="GET", path="/t"),
            span("send", "root", "producer", point="send"),
            span("take", "send", "consumer", "worker", at=(3, done), point="take"),
            span("insert", "take", service="worker"),
            *(span(point, "root") for point in points),
        )

    # Given a consumer that outlasts half of the requests, and a call that some make
    (found,) = discover(shapes((50, order(5)), (50, order(10**12))))
    assert (found.consistency, found.unfit, found.expected) == (1.0, "", frozenset({"send"}))
    (found,) = discover(shapes((50, order(5)), (50, order(10**12, "other"))))
    assert found.consistency == 0.5


def test_too_few_requests_say_nothing() -> None:
    (found,) = discover(shapes((3, request("a"))))
    assert "only 3" in found.unfit


def test_a_lost_call_and_a_refused_request_are_no_inconsistency() -> None:
    (found,) = discover(
        shapes(
            (50, request("ab")), (50, request(["a", "!b", "c"])), (50, request("", status="404"))
        )
    )
    assert found.consistency == 1
    assert found.traces == 150


def test_features_can_be_told_to_count() -> None:
    collected = shapes((9, request("a", query="v=old")), (9, request("a", query="v=new")))
    assert len(discover(collected)) == 1
    assert {each.name for each in discover(collected, by=["query.v"])} == {
        "GET /t query.v is old",
        "GET /t query.v is new",
    }


def test_shapes_merge_to_the_same_whole_in_any_order() -> None:
    runs = [request("ab", at=i) for i in range(5, 15)] + [request("a", at=i) for i in range(7)]
    one, other, whole = Shapes(), Shapes(), Shapes()
    for i, run in enumerate(runs):
        (one if i % 3 else other).add(run)
        whole.add(run)
    other.merge(one)
    assert [(s.count, s.first, s.last, s.traces) for s in other] == [
        (s.count, s.first, s.last, s.traces) for s in whole
    ]


def test_shapes_are_bounded() -> None:
    collected = Shapes(limit=3)
    for i in range(10):
        collected.add(request([f"p{i}"]))
    assert (len(collected), collected.overflow) == (3, 7)


def test_chance_splits_nothing() -> None:
    # Given a cache hit half of the time, and query parameters that have nothing to do with it
    rng = random.Random(1)
    for size in (20, 40, 80, 160, 320, 500):
        queries = [f"by={rng.choice('vwxyz')}&{rng.choice('klm')}=yes" for _ in range(size)]
        runs = [(1, request(rng.choice(["a", "ab"]), query=query)) for query in queries]
        assert [each.name for each in discover(shapes(*runs))] == ["GET /t"]


def test_shapes_without_spans_are_the_same_shapes() -> None:
    whole, bare = Shapes(), Shapes(spans=False)
    for at in (5, 3, 9):
        for collected in (whole, bare):
            collected.add(request("ab", at=at))
    assert [(s.traces, s.count, s.lineage.support) for s in whole] == [
        (s.traces, s.count, s.lineage.support) for s in bare
    ]
    assert all(not shape.lineage.trace.spans for shape in bare)


def test_dozens_of_words_in_one_place_of_a_path_are_names() -> None:
    people = [f"api>http:GET:users/users/{name}/profile" for name in "abcdefghijklmnop"]
    routes = ["api>http:GET:users/health", "api>http:GET:users/users/x/other"]
    names = learned_names([*people, *routes])
    assert set(names) == set(people)
    assert set(names.values()) == {"api>http:GET:users/users/*/profile"}


def test_a_call_that_never_got_through_is_named_like_the_only_one_that_did() -> None:
    names = learned_names(["api>rpc:Find:/D", "api>rpc:Find:driver/D", "api>rpc:Get:/D"])
    assert names == {"api>rpc:Find:/D": "api>rpc:Find:driver/D"}


RPC, HTTP = "api>rpc:Get:{}/shop.Cart", "api>http:GET:{}/carts/*"


@pytest.mark.parametrize(
    ("form", "peers", "answered", "one"),
    [
        (RPC, ["10.0.0.1:7070", "10.0.0.2:7070"], {}, "10.0.0.1:7070"),
        (RPC, ["10.0.0.1:7070", "10.0.0.2:7070", ""], {}, "10.0.0.1:7070"),
        (RPC, ["10.0.0.1:7070", "cart", ""], {"10.0.0.1:7070": "cart"}, "cart"),
        (RPC, ["10.0.0.1:7070", "10.0.0.2:7070"], {"10.0.0.1:7070": "cart"}, "10.0.0.1:7070"),
        (RPC, ["::1:7070", "localhost:7070"], {}, "::1:7070"),
        (
            HTTP,
            ["10.0.0.1:80", "10.0.0.2:80"],
            dict.fromkeys(("10.0.0.1:80", "10.0.0.2:80"), "cart"),
            "10.0.0.1:80",
        ),
        # Services of their own, or perhaps
        (RPC, ["127.0.0.1:1", "127.0.0.1:2"], {"127.0.0.1:1": "a", "127.0.0.1:2": "b"}, None),
        (RPC, ["cart", "cart-eu"], {}, None),
        (HTTP, ["127.0.0.1:1", "127.0.0.1:2"], {}, None),
        (HTTP, ["127.0.0.1:1", "127.0.0.1:2"], {"127.0.0.1:1": "a"}, None),
    ],
)
def test_calls_that_differ_by_address_alone_are_one(
    form: str, peers: list[str], answered: dict[str, str], one: str | None
) -> None:
    points = {peer: form.format(peer) for peer in peers}
    names = learned_names(points.values(), {points[p]: callee for p, callee in answered.items()})
    found = {names.get(point, point) for point in points.values()}
    assert found == ({form.format(one)} if one else set(points.values()))


def test_renaming_reaches_everything() -> None:
    run = renamed(request(["a", "!b"]), {"a": "x", "b": "y"})
    assert run.support | run.failed == {"x", "y"}
    assert run == learn_in_full(run.trace)


@given(st.lists(st.tuples(st.integers(1, 9), st.sampled_from("ab"), st.sampled_from([None, True]))))
def test_shapes_counted_one_by_one_are_what_counting_all_of_them_says(
    seen: list[tuple[int, str, bool | None]],
) -> None:
    # Given requests of two shapes, in any order, some of them at the same time and some the same
    runs = [(replace(request(p, at=at), trace_id=f"{p}{at}"), success) for at, p, success in seen]
    collected = Shapes()
    for run, success in runs:
        collected.add(run, success)
    for shape in collected:
        alike = [(r, s) for r, s in runs if r.support == shape.lineage.support]
        starts = sorted(run.start for run, _ in alike)
        firsts = sorted({(run.start, run.trace_id) for run, _ in alike})[:EXEMPLARS]
        assert (shape.count, shape.first, shape.last) == (len(alike), starts[0], starts[-1])
        assert shape.known == sum(success is not None for _, success in alike)
        assert list(shape.traces) == firsts
        assert shape.lineage.trace_id == firsts[0][1]
    assert sum(shape.count for shape in collected) == len(runs)
