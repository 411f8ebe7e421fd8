"""Lengths drawn by lot: how they are spread, that they are bounded, and that a lot says which."""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.fit.protocol.context import MAX_LENGTH, decode, encode, room
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.keys import Keys
from ldfi.fit.protocol.kinds import (
    alike_of,
    draws,
    kind_of,
    late,
    lengths,
    longest,
    outlasted,
    shown_as,
)
from ldfi.fit.protocol.lengths import chance, drawn, lengths_of
from ldfi.fit.protocol.notation import draw_key_of, length_of
from tests.fit.kinds import ANY_KIND, DRAWN

KEYS = Keys.parse(f"{'k' * 16}:0123456789abcdef")
NOTED = DRAWN.map(lengths)
CHANCES = st.floats(1e-12, 1 - 1e-12)
COUNT = 2_000


@given(NOTED, st.lists(CHANCES, min_size=2))
def test_a_larger_chance_is_a_longer_length(text: str, chances: list[float]) -> None:
    found = [lengths_of(text).at(each) for each in sorted(chances)]
    assert all(shorter <= longer * (1 + 1e-12) for shorter, longer in pairwise(found))


@given(NOTED)
def test_a_notation_means_what_it_says(text: str) -> None:
    first, second = (float(part.partition("=")[2] or part) for part in text.split(".."))
    found = lengths_of(text)
    if text.startswith("p50="):
        assert found.at(0.5) == pytest.approx(first)
        assert found.at(0.99) == pytest.approx(second)
    else:
        assert found.at(0.5) == pytest.approx((first + second) / 2)
        assert first <= found.at(1e-12) <= found.at(1 - 1e-12) <= second
    assert longest([f"delay:{text}", "timeout"]) == second


@given(NOTED, st.text())
def test_what_is_drawn_is_spread_as_it_says(text: str, salt: str) -> None:
    """By the inequality of Dvoretzky, Kiefer and Wolfowitz, in Massart's exact form: no share is
    further off than this, but in one of 10⁹ salts."""
    off = math.sqrt(math.log(2e9) / (2 * COUNT))
    found = sorted(drawn(text, f"{salt}\n{number}") for number in range(COUNT))
    said = lengths_of(text)
    for percent in range(1, 100):
        below = bisect_right(found, said.at(percent / 100)) / COUNT
        assert abs(below - percent / 100) <= off


@given(st.text(), st.text())
def test_a_lot_says_what_is_drawn(draw_key: str, other: str) -> None:
    assert 0 < chance(draw_key) < 1
    assert (chance(draw_key) == chance(other)) == (draw_key == other)


@given(DRAWN, st.integers(1, 9_999_999), st.text(), st.booleans())
def test_the_edge_draws_and_readers_see_one_plain_length(
    kind: str, delay_ms: int, draw_key: str, beside: bool
) -> None:
    faults = [Fault("p0", kind), Fault("p1", kind, 3), Fault("p2", "delay")]
    faults += [Fault("p3", "refused")] if beside else []

    value = encode(KEYS, "e", "treatment", 200, faults, delay_ms=delay_ms, draw_key=draw_key)

    assert value.startswith("2." if beside else "1.")
    context = decode(KEYS, value, now=100)
    for fault in faults[:2]:
        injection = context.at(fault.point)
        assert injection is not None
        assert (injection.kind, injection.first) == ("delay", fault.first)
        assert 1 <= injection.delay_ms == length_of(fault, delay_ms, draw_key) <= delay_ms
        wanted = 1000 * drawn(lengths(kind), f"{draw_key}\n{fault.point}")
        assert abs(injection.delay_ms - min(max(wanted, 1), delay_ms)) <= 0.5
    plain = context.at("p2")
    assert plain is not None
    assert plain.delay_ms == delay_ms
    assert value == encode(
        KEYS, "e", "treatment", 200, faults, delay_ms=delay_ms, draw_key=draw_key
    )


@given(
    st.sets(ANY_KIND | DRAWN, min_size=1, max_size=6),
    st.integers(1, 9_999_999),
    st.text(),
    st.data(),
)
def test_as_many_faults_fit_as_there_is_said_to_be_room_for(
    kinds: set[str], delay_ms: int, draw_key: str, data: st.DataObject
) -> None:
    most = room(kinds, delay_ms=delay_ms)
    chosen = data.draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=6))
    faults = [Fault(f"p{i}", chosen[i % len(chosen)]) for i in range(most)]

    written = encode(
        KEYS, "e" * 64, "control", 10**11, faults, delay_ms=delay_ms, draw_key=draw_key
    )

    assert len(written) <= MAX_LENGTH
    assert len(decode(KEYS, written, now=10**11 - 60).injections) == most


@given(DRAWN, st.sampled_from(["delay", "timeout", "refused", "error"]), st.booleans())
def test_of_a_length_that_is_drawn_and_anything_else_the_other_is_written(
    kind: str, stronger: str, first: bool
) -> None:
    faults = [Fault("a", kind), Fault("a", stronger)]
    value = encode(KEYS, "e", "treatment", 200, faults if first else faults[::-1])
    injection = decode(KEYS, value, now=100).at("a")
    assert injection is not None
    assert injection.kind == stronger
    assert injection.delay_ms == (10_000 if stronger in {"delay", "timeout"} else 0)


@given(DRAWN)
def test_a_length_that_is_drawn_comes_late_and_is_like_nothing_else(kind: str) -> None:
    assert late(kind)
    assert shown_as(f"{kind}@a>http:GET:b/") == "delay@a>http:GET:b/"
    with pytest.raises(ValueError, match="no kinds as alike"):
        alike_of(f"{kind}+refused")


@given(ANY_KIND)
def test_no_other_kind_draws(kind: str) -> None:
    assert lengths(kind) == ""
    assert longest([kind]) == 0
    assert shown_as(f"{kind}@p") == f"{kind}@p"


def test_the_same_faults_in_any_order_are_one_lot() -> None:
    one, other = Fault("a", "delay:0.5..2"), Fault("b", "delay:0.5..2")
    assert draw_key_of([one, other]) == draw_key_of([other, one]) != draw_key_of([one])


def test_a_slow_body_says_its_length_or_how_it_is_drawn() -> None:
    for kind, ms, drawn_anew in (
        ("slow:2", {2000}, False),
        ("slow:0.001", {1}, False),
        ("slow:0.5..2", range(500, 2001), True),
        ("slow:p50=0.8..p99=3", range(1, 5001), True),
    ):
        fault = Fault("a", kind)
        found = {length_of(fault, 5000, f"lot {number}") for number in range(100)}
        assert found <= set(ms)
        assert draws(kind) == drawn_anew == (len(found) > 1)
        assert late(kind)
        assert outlasted(kind)
        assert shown_as(f"{kind}@a") == "slow@a"
    assert longest(["slow:2", "refused", "delay:0.5..1"]) == 2
    with pytest.raises(ValueError, match="takes no kinds as alike"):
        alike_of("slow:2+refused")
    with pytest.raises(ValueError, match="seconds, as in slow:2"):
        kind_of("slow")
    with pytest.raises(ValueError, match="a fixed delay has no length"):
        kind_of("delay:2")


def test_a_context_is_of_version_3_where_a_body_is_slow_and_of_no_other() -> None:
    def value(*faults: str) -> str:
        armed = [Fault.parse(fault) for fault in faults]
        return encode(KEYS, "e", "treatment", 60, armed, delay_ms=5000)

    assert [value(each)[0] for each in ("error@a", "delay@a", "refused@a", "slow:2@a")] == [*"1123"]
    context = decode(KEYS, value("slow:2@a", "refused@b", "slow:9:1@c"), 0)
    slow, refused, cut = (context.at(point) for point in "abc")
    assert slow is not None
    assert (slow.kind, slow.delay_ms, slow.first) == ("slow", 2000, 0)
    assert refused is not None
    assert refused.kind == "refused"
    assert cut is not None
    assert (cut.kind, cut.delay_ms, cut.first) == ("slow", 5000, 1)
    weaker = decode(KEYS, value("slow:2@a", "delay@a"), 0).at("a")
    assert weaker is not None
    assert weaker.kind == "delay"
