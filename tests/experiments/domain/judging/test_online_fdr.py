from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.judging.online_fdr import EXPONENT, ZETA, OnlineFdr, gamma

ZETA_AT_EXPONENT = 10.584448464950803
"""Riemann's zeta function at 1.1."""


def test_the_shares_sum_to_one_at_most_however_long_it_goes_on() -> None:
    partial_sum = sum(gamma(t) for t in range(1, 100_001))
    rest_at_most = 100_000 ** (1 - EXPONENT) / (EXPONENT - 1) / ZETA  # the integral from there

    assert partial_sum + rest_at_most <= 1
    assert EXPONENT == 1.1
    assert ZETA_AT_EXPONENT <= ZETA < ZETA_AT_EXPONENT + 1e-3


def test_zeta_lies_where_its_integrals_say() -> None:
    """The first n terms, and the rest between the integrals from n + 1 and from n."""
    n, power = 100_000, EXPONENT - 1
    first = math.fsum(t**-EXPONENT for t in range(1, n + 1))

    assert first + (n + 1) ** -power / power < ZETA_AT_EXPONENT < first + n**-power / power


@given(st.lists(st.integers(0, 3), max_size=200), st.floats(0.001, 0.5))
def test_levels_never_exceed_alpha(discoveries: list[int], alpha: float) -> None:
    fdr = OnlineFdr()
    for t, found in enumerate(discoveries, start=1):
        level = fdr.next_level(alpha)
        assert 0 < level <= alpha
        assert level == pytest.approx(alpha * gamma(t) * (fdr.discoveries + 1))
        for _ in range(min(found, fdr.tested - fdr.discoveries)):
            fdr.discovered()


def test_discoveries_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="3 discoveries in 2 experiments"):
        OnlineFdr(tested=2, discoveries=3)
    with pytest.raises(ValueError, match="alpha is 1"):
        OnlineFdr().next_level(1.0)


def test_what_was_found_before_the_stream_began_lifts_no_level() -> None:
    fdr = OnlineFdr()
    fdr.discovered()

    assert (fdr.tested, fdr.discoveries) == (0, 0)
    assert fdr.next_level() == OnlineFdr().next_level()


def false_share(rng: random.Random, harmful: float, side_by_side: int, alpha: float) -> float:
    """The share of false discoveries in one stream of 200 hypotheses.

    Under the null the e-value is the most dishonest there is: 1/α_t with a chance of α_t, else 0,
    one on average and a discovery as often as an e-value can be one. The truly harmful are found.
    """
    fdr, true, false = OnlineFdr(), 0, 0
    for _ in range(200 // side_by_side):
        levels = [fdr.next_level(alpha) for _ in range(side_by_side)]
        for level in levels:
            if rng.random() < harmful:
                true += 1
            elif rng.random() < level:
                false += 1
            else:
                continue
            fdr.discovered()
    return false / max(1, true + false)


@pytest.mark.parametrize("side_by_side", [1, 20])
@pytest.mark.parametrize("harmful", [0.0, 0.05, 0.5])
def test_the_false_share_stays_below_alpha_at_worst(harmful: float, side_by_side: int) -> None:
    """At α = 0.2, where too high a level would show."""
    rng = random.Random(7)
    shares = [false_share(rng, harmful, side_by_side, 0.2) for _ in range(1_000)]

    assert sum(shares) / len(shares) <= 0.2
