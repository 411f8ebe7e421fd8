"""Whether requests still reach the point: against brute force, and by hand."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.judging.reachability import LEVEL, Reachability, Share
from ldfi.fit.protocol.context import Arm

Request = tuple[str, int, bool]

REQUESTS = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 30), st.booleans()),
    unique_by=lambda request: request[:2],
)


def reach_of(
    requests: list[Request], before: Share | None = None, arm: Arm = "treatment"
) -> Reachability:
    reach = Reachability(before)
    for device, start, reached in requests:
        reach.add(arm, device, start, f"{device}{start}", reached=reached)
    return reach


def by_hand(requests: list[Request]) -> tuple[Share, Share]:
    """Each device's first request and last one, cut in the middle."""
    kept = set()
    for device in {each[0] for each in requests}:
        own = sorted((start, f"{d}{start}", ok, d) for d, start, ok in requests if d == device)
        kept |= {own[0], own[-1]}
    ordered = sorted(kept)
    early, late = ordered[: len(ordered) // 2], ordered[len(ordered) // 2 :]
    firsts = {min(e for e in ordered if e[3] == d) for d in {e[3] for e in ordered}}
    lasts = {max(e for e in ordered if e[3] == d) for d in {e[3] for e in ordered}}
    first, last = [e for e in early if e in firsts], [e for e in late if e in lasts]
    return (
        Share(sum(e[2] for e in first), len(first)),
        Share(sum(e[2] for e in last), len(last)),
    )


@given(REQUESTS, st.randoms())
def test_the_parts_are_those_of_brute_force(requests: list[Request], shuffled: object) -> None:
    told = list(requests)
    shuffled.shuffle(told)  # type: ignore[attr-defined]
    assert reach_of(told).parts("treatment") == by_hand(requests)


@pytest.mark.parametrize("arm", ["treatment", "control"])
def test_a_point_that_is_reached_no_more_is_named_with_the_figures(arm: Arm) -> None:
    requests = [(f"d{n}", n, n < 12) for n in range(30)]
    told = reach_of(requests, Share(198, 200), arm).fallen()
    name = "treated" if arm == "treatment" else "control"
    assert told == (
        f"{name} requests stopped reaching the point: 0 of 15 did in the later part of the "
        "experiment, 198 of 200 before the experiment"
    )
    alone = reach_of(requests, arm=arm).fallen()
    assert alone is not None
    assert alone.endswith("0 of 15 did in the later part of the experiment, 12 of 15 at first")


def test_a_point_that_is_reached_as_often_or_more_often_is_none() -> None:
    steady = [(f"d{n}", n, n % 3 == 0) for n in range(60)]
    assert reach_of(steady, Share(67, 200)).fallen() is None
    rising = [(f"d{n}", n, n >= 30) for n in range(60)]
    assert reach_of(rising, Share(20, 200)).fallen() is None
    assert Reachability(Share(200, 200)).fallen() is None


def test_equal_shares_are_seldom_taken_for_a_fall() -> None:
    """Every outcome of eight requests against a known half: the sum of what would be refused."""
    before = Share(100, 200)
    refused = sum(Share(sum(ways), 8).fewer_than(before) for ways in product((0, 1), repeat=8))
    assert refused / 2**8 <= LEVEL
