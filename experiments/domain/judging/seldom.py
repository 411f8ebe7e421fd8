"""Devices that ask seldom: *tolerated* has to be shown of them by themselves, where they matter.

Those that ask often are drawn first, and what they have that others lack, such as a cache, is then
taken for everybody's. Where a share of δ of all devices or more asks seldom
(:mod:`ldfi.experiments.domain.traffic.frequency`), the tests are therefore asked once more, of
these devices alone. How often a device asks is what was known before it came into the experiment:
afterwards that may be the fault's doing. So the rise is less than δ among those that ask seldom and
among all that came, and more of them are let in until that is so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ldfi.experiments.domain.judging.ordered import Ordered
from ldfi.experiments.domain.judging.stays import Stays
from ldfi.experiments.domain.traffic.frequency import Frequency


def places(
    frequency: Frequency, asked: Mapping[str, int], order: Ordered, delta: float
) -> list[bool] | None:
    """Return for each that counted, in order, whether it is of a device that asks seldom; None
    where these are too few to matter. ``asked``: device → how many requests were known of
    before."""
    most, share = frequency.seldom()
    if share < delta:
        return None
    return order.among([each for each, known in asked.items() if known < most])


def unshown(stays: Stays, seldom: Sequence[bool] | None) -> str | None:
    """Return a message that too little is known of those that ask seldom; None where it is
    tolerated by them."""
    if seldom is None or stays.final_of(seldom) == "tolerated":
        return None
    return (
        f"many devices ask seldom, and by the {sum(seldom)} of them that counted in either arm it "
        "is not shown that these do not fail more often: let more be treated (members), or observe "
        "for longer (window)"
    )
