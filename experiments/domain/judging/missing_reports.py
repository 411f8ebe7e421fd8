"""Silence is no success: what devices that never reported do to a verdict.

A device that crashed does not report. So *tolerated* takes more than that those who reported did
not fail more often: it has to be shown that **heard and well** is no rarer than in control by a
share of δ. Whoever was silent may have reached the point and counts as not well, in both arms; that
is right whatever share of the requests reaches it, and however much is lost anyway, for both make
either arm's share smaller by the same factor. How many were silent is known, and not which of them
came when. So all of them are one look of the test that is for counts
(:mod:`ldfi.experiments.domain.judging.counted_outcomes`), with bets that both arms fare alike.

The more are silent anyway, the more devices that takes (:func:`takes`). Where control is not known
nobody was silent there. Where silence in both arms plainly differs, whichever has more of it, the
two cannot be compared at all (Fisher's exact test): silence in control alone would make *harmful*
of nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from ldfi.checker.record import BothReports, Reports
from ldfi.experiments.domain.judging.comparison import differ, more
from ldfi.experiments.domain.judging.ordered_outcomes import Ordered
from ldfi.experiments.domain.judging.reachability import Reachability
from ldfi.experiments.domain.judging.sequential_tests import Verdict
from ldfi.experiments.domain.settings import Settings
from ldfi.fit.protocol.context import Arm

HIDING: Final = 0.025
"""How seldom an inconclusive verdict may be put down to silence that came by chance."""
UNEQUAL: Final = 0.001
"""How seldom equal shares may be taken for different ones, whatever the verdict."""
MOST: Final = 100_000
"""Devices after which *tolerated* counts as never reached."""
_BETS: Final = tuple(math.sin(math.pi * step / 40) ** 2 for step in range(1, 20))
"""Shares that are not heard and well, which are bet on: as dense as they can be told apart."""


def reports(
    reach: Reachability, order: Ordered, treated: int, control: int | None, until: float = math.inf
) -> BothReports:
    """Return how many devices of each arm reported, of those that edges enrolled (``control``
    None: unknown).

    ``until``: of those whose first request had begun by then (Unix seconds).
    """

    def of(arm: Arm, enrolled: int) -> Reports:
        heard, more = reach.heard(arm, until), reach.counted_again(arm, until)
        return Reports(max(enrolled - more, len(heard)), len(heard), *order.fared(heard))

    return BothReports(of("control", control or 0), of("treatment", treated))


def evidence(both: BothReports, delta: float) -> float:
    """Return the logarithm of the evidence that heard and well is no rarer by a share of δ.

    Infinite where none of the treated was silent: then the tests know all of them.
    """
    return weigh(*both.look, delta) if both.treatment.silent else math.inf


def weigh(control: float, unwell: float, treated: float, hurt: float, delta: float) -> float:
    """Return the same for so many devices of either arm, and how many of them were not heard and
    well: the mean of likelihood ratios, of bets against what is nearest to them with
    w₁ = (1 - δ)w₀."""
    if not (control and treated):
        return 0.0
    k, ratios = control / treated, []
    for bet in _BETS:
        a = _nearest(bet, delta, k)
        b = a + delta * (1 - a)
        ratios.append(
            unwell * math.log(bet / a)
            + (control - unwell) * math.log((1 - bet) / (1 - a))
            + hurt * math.log(bet / b)
            + (treated - hurt) * math.log((1 - bet) / (1 - b))
        )
    best = max(ratios)
    return best + math.log(sum(math.exp(each - best) for each in ratios) / len(ratios))


def shown(both: BothReports, settings: Settings) -> bool:
    """Return whether it is shown that treated devices report success at most δ less often."""
    return part_shown(both, settings) >= 1


def part_shown(both: BothReports, settings: Settings) -> float:
    """Return what part there is of the evidence that it takes; below 0 where it is against it."""
    return evidence(both, settings.delta) / -math.log(settings.alpha_tolerated)


def hopeless(both: BothReports, settings: Settings) -> bool:
    """Return whether more devices would not show it: because more of the treated are silent, or
    because it takes more devices than may be treated."""
    control, treated = both.control, both.treatment
    each = (treated.silent, treated.enrolled, control.silent, control.enrolled)
    return more(*each, HIDING) or too_many(unwell(both), settings) is not None


@lru_cache(maxsize=1024)
def takes(share: float, delta: float, alpha: float, ratio: float) -> float:
    """Return how many treated devices *tolerated* takes where this ``share`` of either arm is not
    heard and well anyway; infinite where :data:`MOST` are not enough. ``ratio``: of control to
    them."""

    def enough(treated: int) -> bool:
        control = ratio * treated
        found = weigh(control, share * control, treated, share * treated, delta)
        return found >= -math.log(alpha)

    low, high = 1, 2
    while not enough(high):
        low, high = high, 2 * high
        if high > MOST:
            return math.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def too_many(share: float, settings: Settings) -> str | None:
    """Return a message that control's silence alone makes *tolerated* impossible with the
    devices that may be treated; None where it does not. ``share``: of control that is not heard
    and well."""
    ratio = settings.control / settings.treatment
    wanted = takes(round(share, 2), settings.delta, settings.alpha_tolerated, ratio)
    if wanted <= settings.members:
        return None
    more_members = f"let {wanted:,} be treated (members), " if math.isfinite(wanted) else ""
    return (
        f"of {share:.0%} of the devices it is not heard that they are well, whatever is injected: "
        f"tolerated takes {wanted:,} treated devices then, and {settings.members} may be. "
        f"To go on, {more_members}have more devices report, or take a larger delta"
    )


def unwell(both: BothReports) -> float:
    """Return the share of control that is not heard and well; 0 without any."""
    exposed, bad, _, _ = both.look
    return bad / exposed if exposed else 0.0


def missing_reports(
    both: BothReports,
    settings: Settings,
    verdict: Verdict,
    judged_by: BothReports | None = None,
    *,
    known: bool = True,
) -> str | None:
    """Return why too many were silent for a verdict; None where they were not. An inconclusive one
    says it where more of the treated were. ``judged_by``: the reports by which *tolerated* is to
    be, all by default. ``known``: whether it is how many are in control."""
    control, treated = both.control, both.treatment
    said = f"{treated.silent} of {treated.enrolled} treated devices never reported"
    if known:
        said += f", {control.silent} of {control.enrolled} in control"
    each = (treated.silent, treated.enrolled, control.silent, control.enrolled)
    many = treated.silent > treated.enrolled * settings.delta
    unequal = differ(*each, UNEQUAL) if known else many
    if unequal or (verdict == "inconclusive" and more(*each, HIDING)):
        return said
    if verdict != "tolerated" or shown(judged_by or both, settings):
        return None
    rest = too_many(unwell(both), settings)
    return f"{said}; {rest}" if rest else f"{said}: more devices may have to be treated (members)"


class _Roll(NamedTuple):
    """How many devices of either arm had been let in ``at`` a time (Unix seconds)."""

    at: float
    treated: int
    control: int

    def read(self, reach: Reachability, order: Ordered) -> BothReports:
        return reports(reach, order, self.treated, self.control, self.at)


@dataclass(slots=True)
class RollCall:
    """Who had been let in when *tolerated* was said first: of these it is known, once they have had
    time to report, how many never did. Where they show that heard and well is no rarer, nothing
    rests on those let in since: evidence may be looked at whenever one likes.

    ``doubts``: once so few were heard of and well, or so few that ask seldom, that more were let
    in.
    """

    doubts: bool = False
    _called: _Roll | None = None
    _shown: _Roll | None = None

    def call(self, now: float, treated: int, control: int, *, calm: bool) -> None:
        """Note how many were let in when *tolerated* was said; forget it where it is no longer."""
        if not calm:
            self._called = None
        elif self._called is None:
            self._called = _Roll(now, treated, control)

    def read(self, reach: Reachability, order: Ordered, settings: Settings) -> BothReports:
        """Return how many of these have reported, and begin anew."""
        called, self._called = self._called or _Roll(0.0, 0, 0), None
        found = called.read(reach, order)
        self._shown = called if shown(found, settings) else None
        return found

    def enough(
        self, reach: Reachability, order: Ordered, everybody: BothReports, settings: Settings
    ) -> BothReports:
        """Return the reports by which *tolerated* is to be judged: of those who have shown it, if
        they still do and ``everybody`` is for it rather than against it; else of everybody."""
        of = self._shown and self._shown.read(reach, order)
        holds = of and shown(of, settings) and part_shown(everybody, settings) > 0
        return of if of and holds else everybody


def _nearest(bet: float, delta: float, k: float) -> float:
    """Return the a for which (a, a + δ(1 - a)) is nearest to (bet, bet) in Kullback-Leibler
    divergence, control weighed k times: the positive root of a quadratic."""
    rest = 1 - delta
    square = (k + 1) * rest
    linear = k * (delta - bet * rest) + delta - bet
    return (math.sqrt(linear**2 + 4 * square * k * bet * delta) - linear) / (2 * square)
