"""What is known of the sets that are presumed safe, by re-checks."""

from __future__ import annotations

import pytest

from ldfi.checker.verdict_meaning import upper_bound


@pytest.mark.parametrize(
    ("failed", "tried", "bound"),
    [
        # Clopper and Pearson, one-sided at 95 %: 1 - 0.05^(1/n) where none failed
        (0, 0, 1.0),
        (0, 1, 0.95),
        (0, 58, 0.05034),
        (0, 59, 0.04951),
        (1, 10, 0.39416),
        (5, 100, 0.10225),
        (10, 10, 1.0),
        (0, 100_000, 2.9957e-5),
    ],
)
def test_the_bound_on_a_share(failed: int, tried: int, bound: float) -> None:
    assert upper_bound(failed, tried) == pytest.approx(bound, rel=1e-3)
