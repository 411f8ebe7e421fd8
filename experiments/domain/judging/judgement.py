"""What becomes of what the tests say, given all else that is known of an experiment.

In this order: nothing fired; others were hurt; too many were silent; requests stopped reaching the
point. The tests have seen none of it.
"""

from __future__ import annotations

from typing import NamedTuple

from ldfi.experiments.domain.judging.verdict import Verdict
from ldfi.proof.record import Overruled


class Besides(NamedTuple):
    """Each in words, None where it is not so. ``first``: it is the first of two slots, of which one
    alone does not tell what it did to others from what came over everybody. ``silent``: what was
    said for a verdict of the tests' own; ``fallen`` matters to *tolerated* alone."""

    fired: bool
    hurt: str | None
    first: bool
    silent: str | None
    fallen: str | None


class Judged(NamedTuple):
    """``overruled``: why the verdict is not what the tests say, where it is not."""

    verdict: Verdict
    reason: str
    overruled: Overruled | None = None


def judge(told: Verdict, reason: str, besides: Besides) -> Judged:
    """Give the verdict. ``told``: by the tests; ``reason``: why the experiment was stopped."""
    if not besides.fired:
        return Judged("inconclusive", "no fault fired", "nothing fired")
    if besides.hurt is not None:
        reason = f"bystanders are hurt: {besides.hurt}"
        if told == "harmful":
            return Judged("harmful", reason)
        return Judged("inconclusive" if besides.first else "harmful", reason, "bystanders")
    if besides.silent is not None:
        silent = besides.silent if told != "inconclusive" else f"{reason}; {besides.silent}"
        return Judged("inconclusive", silent, "silence")
    if told == "tolerated" and besides.fallen is not None:
        return Judged("inconclusive", besides.fallen, "reach")
    return Judged(told, reason)
