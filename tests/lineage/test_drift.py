"""A class has changed when its requests rely on other points, not when they vary as ever."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.lineage.drift import JUDGED, SETTLED, Drift, Reliance, Watch, drift
from ldfi.lineage.shapes import Shapes
from ldfi.testing.spans import lineage, span


def reliance(requests: int, **shares: float) -> Reliance:
    return Reliance(requests, {p: round(requests * share) for p, share in shares.items() if share})


def sampled(rng: random.Random, requests: int, shares: Mapping[str, float]) -> Reliance:
    """So many requests, each of which relies on each point with its own probability."""
    counts = {p: sum(rng.random() < q for _ in range(requests)) for p, q in shares.items()}
    return Reliance(requests, {p: count for p, count in counts.items() if count})


def test_only_good_unperturbed_requests_count() -> None:
    shapes = Shapes()
    a, b = span("a", "root", point="a"), span("b", "root", point="b", failed=True)
    root = span("root", kind="server", at=(0, 9))
    for run, success in (((a,), True), ((a,), True), ((a,), False), ((a, b), True)):
        shapes.add(lineage(root, *run), success)
    assert Reliance.of(shapes) == Reliance(2, {"a": 2})


@pytest.mark.parametrize(
    ("known", "fresh", "expected"),
    [
        ({"a": 1.0}, {"a": 1.0}, Drift()),
        ({"a": 1.0}, {"a": 1.0, "b": 0.2}, Drift(appeared=frozenset("b"))),
        ({"a": 1.0}, {"a": 1.0, "b": 0.19}, Drift()),
        ({"a": 1.0, "b": 0.009}, {"a": 1.0, "b": 0.5}, Drift(appeared=frozenset("b"))),
        ({"a": 1.0, "b": 0.02}, {"a": 1.0, "b": 0.9}, Drift()),
        ({"a": 1.0, "b": 0.2}, {"a": 1.0}, Drift(vanished=frozenset("b"))),
        ({"a": 1.0, "b": 0.19}, {"a": 1.0}, Drift()),
        ({"a": 1.0, "b": 0.9}, {"a": 1.0, "b": 0.001}, Drift()),
        ({"a": 1.0}, {"b": 1.0}, Drift(frozenset("b"), frozenset("a"))),
    ],
)
def test_what_is_a_change(
    known: dict[str, float], fresh: dict[str, float], expected: Drift
) -> None:
    assert drift(reliance(1000, **known), reliance(1000, **fresh)) == expected


def test_too_few_requests_say_nothing() -> None:
    old, new = {"a": 1.0}, {"b": 1.0}
    assert not drift(reliance(JUDGED - 1, **old), reliance(SETTLED, **new))
    assert not drift(reliance(SETTLED, **old), reliance(JUDGED - 1, **new))
    assert drift(reliance(JUDGED, **old), reliance(SETTLED - 1, **new)) == Drift(frozenset("b"))


_shares = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from([0.01, 0.3, 0.5, 0.9, 1.0]))


@given(_shares, st.integers(0, 2**32), st.lists(st.integers(0, 600), max_size=30))
def test_a_class_that_stays_as_it_is_never_drifts(
    shares: dict[str, float], seed: int, sizes: list[int]
) -> None:
    rng, watch = random.Random(seed), Watch()
    for size in sizes:
        assert not watch.take(sampled(rng, size, shares))


@given(st.integers(0, 2**32), st.sampled_from([10, 40, 60, 150, 500]), st.booleans())
def test_a_change_is_seen_however_small_the_samples(seed: int, size: int, gone: bool) -> None:
    rng, watch = random.Random(seed), Watch()
    before = {"a": 1.0, "cache": 0.5, **({"b": 1.0} if gone else {})}
    after = {"a": 1.0, "cache": 0.5, **({} if gone else {"b": 1.0})}
    for _ in range(800 // size + 1):
        watch.take(sampled(rng, size, before))
    # What was put together with requests from before the change delays it by as many at most
    taken = [watch.take(sampled(rng, size, after)) for _ in range(2 * (SETTLED + size) // size + 1)]
    found = [each for each in taken if each]
    expected = Drift(vanished=frozenset("b")) if gone else Drift(appeared=frozenset("b"))
    assert found == [expected]
