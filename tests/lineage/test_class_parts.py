"""What only some requests of a class rely on, and when that makes it no class."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.lineage.class_parts import COMMON, contradiction, parts
from ldfi.lineage.classes import discover
from ldfi.lineage.shapes import Shapes
from ldfi.testing.spans import lineage, span

Supports = dict[str, int]


def seen(supports: Supports) -> dict[frozenset[str], int]:
    return {frozenset(points.split()): count for points, count in supports.items()}


@pytest.mark.parametrize(
    ("supports", "found"),
    [
        ({"cache": 60, "cache db": 40}, {"db": 0.4}),
        ({"cache": 90, "cache db set": 10}, {"db set": 0.1}),
        ({"cache": 5, "cache db": 95}, {"db": 0.95}),
        ({"": 60, "db": 40}, {"db": 0.4}),  # a cache in the process
        ({"a": 88, "a token": 12}, {"token": 0.12}),
        ({"a": 42, "a b": 18, "a t": 28, "a b t": 12}, {"b": 0.3, "t": 0.4}),
        ({"cache hit": 60, "cache db set": 38, "": 7}, {}),  # neither is a part of the other
        ({"a": 98, "a b": 2}, {}),
        ({"a": 2, "a b": 98}, {}),
    ],
)
def test_what_only_some_requests_call_is_a_part_with_its_share(
    supports: Supports, found: dict[str, float]
) -> None:
    if found or sum(supports.values()) == 100:
        varying = {" ".join(sorted(p.points)): p.share for p in parts(seen(supports))}
        assert varying == pytest.approx(found)
        assert contradiction(seen(supports)) == ()


@pytest.mark.parametrize(
    "supports",
    [
        {"a b": 50, "c d": 50},
        {"auth a b": 70, "auth c": 30},
        {"a": 45, "b": 43, "": 4, "c": 8},
        {"a": 20, "b": 20, "c": 20, "d x": 20, "e": 20},
        {"a": 92, "b": 8},
        {"auth a": 46, "auth b": 46, "auth a b": 1, "auth": 1},
    ],
)
def test_parts_of_which_each_request_has_one_contradict_each_other(supports: Supports) -> None:
    found = contradiction(seen(supports))
    assert sum(part.share for part in found) >= 1 - COMMON
    assert len(frozenset().union(*(part.points for part in found))) == sum(
        len(part.points) for part in found
    )


@given(
    st.lists(st.sampled_from([0.05, 0.125, 0.3, 0.5, 0.6, 0.8, 0.95]), min_size=1, max_size=4),
    st.integers(0, 99),
)
def test_caches_tokens_and_batches_by_themselves_never_contradict(
    shares: list[float], seed: int
) -> None:
    # Given requests that call each of some things by chance, apart from what all of them call
    rng = random.Random(seed)
    requests = [
        frozenset({"all", *(f"p{i}" for i, share in enumerate(shares) if rng.random() < share)})
        for _ in range(400)
    ]
    supports = Counter(requests)
    # Then they are of one class, and what varies has its share
    if len([share for share in shares if share >= 0.9]) < 2:
        assert contradiction(supports) == ()
    for part in parts(supports):
        assert COMMON <= part.share <= 1 - COMMON
        assert part.share == sum(part.points <= each for each in requests) / 400


def test_what_fails_in_nearly_every_good_request_is_down_already() -> None:
    # Given a dead dependency that a fallback stands in for, and one request that found it alive
    root = span("root", kind="server", method="GET", path="/t")
    down = lineage(root, span("ads", "root", failed=True), span("spare", "root"), span("a", "root"))
    collected = Shapes()
    for number in range(513):
        collected.add(down if number else lineage(root, span("ads", "root"), span("a", "root")))
    # Then its requests are what the class is without it
    (found,) = discover(collected)
    assert (found.sample, found.unfit, found.down) == (512, "", frozenset({"ads"}))
    assert found.expected == {"a", "spare"}
    # And what fails in some of them only is no such thing
    for _ in range(100):
        collected.add(lineage(root, span("ads", "root"), span("a", "root")))
    (found,) = discover(collected)
    assert (found.sample, found.down) == (101, frozenset())
