"""Can a campaign decide anything? Asked before it starts, by the traffic that was seen.

How many outcomes a verdict takes is asked of the very tests that will judge: they are fed arms of
devices that see no more failures than the class has anyway (*tolerated*), and a treatment in which
everybody is hurt (*harmful*; smaller harm takes longer). With the rate of requests and the shares,
that is a time, and a number of members. A class decides where the outcomes to be expected within
the window, and the members, are enough.

They are fed in turn, but devices are drawn at random, and of two treated ones without a control
device beside them one counts. With a share s of treated among both arms it therefore takes
1 + s²/(1 - s) times as many: half as many again at one to one, one in a hundred at ten to one.

Every request is taken to come from a device of its own. Where devices come back it takes longer,
for each counts once.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Literal

from ldfi.experiments.domain.judging import two_slots
from ldfi.experiments.domain.judging.missing_reports import takes
from ldfi.experiments.domain.judging.sequential_tests import Verdict, tests_for
from ldfi.experiments.domain.settings import (
    DEFAULTS,
    LONGEST_WINDOW,
    PROFILES,
    SETTINGS,
    Settings,
    Thresholds,
    VerdictRule,
)

Decides = Literal["both", "harm", "nothing"]
"""Which verdicts a class can reach: both, only ``harmful``, or none."""

MOST: Final = 5_000
"""Outcomes after which a verdict counts as never reached."""

RATIO: Final = 10
"""Control devices for each treated one, where there are so many: the evidence of a treated failure
grows with them, and they are not hurt."""
MOST_CONTROL: Final = 0.4

SURE: Final = 1.64
"""Standard deviations by which a profile chooses more than the outcomes needed on average: nineteen
windows of twenty hold enough."""

NAMED: Final = 5
"""Classes that a refusal names; the others are counted."""


@dataclass(frozen=True, slots=True)
class Needed:
    """Outcomes of either arm that a verdict takes."""

    treated: int
    control: int


@dataclass(frozen=True, slots=True)
class Flow:
    """The traffic of one class: requests ``per_second`` of which the outcome came to be known, the
    share of them that fails by itself, and the share of all that devices report on. ``rarest``: the
    share of them that call the point that the fewest do."""

    request_class: str
    per_second: float
    failing: float = 0.0
    heard: float = 1.0
    rarest: float = 1.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one class can decide. ``expected``: treated outcomes in one window; ``members`` of them
    may be exposed. ``harmful``, ``tolerated``: what these verdicts take; None: never reached."""

    flow: Flow
    expected: float
    members: int
    harmful: Needed | None
    tolerated: Needed | None
    window: float
    treatment: float

    @property
    def decides(self) -> Decides:
        """Return which verdicts it can reach, more often than not."""
        if not self._enough(self.harmful):
            return "nothing"
        return "both" if self._enough(self.tolerated) else "harm"

    @property
    def seconds(self) -> float:
        """Return how long it takes until either verdict is reached, on average."""
        arriving = self.flow.per_second * self.treatment
        worst = most_treated(self.harmful, self.tolerated)
        return worst / arriving if arriving else math.inf

    @property
    def at_rarest(self) -> Estimate | None:
        """Return the same for experiments at the point that the fewest requests call, of those that
        call it: they are planned for longer, and members that pass it by are treated as well. None
        where all points are called by all."""
        share = self.flow.rarest
        if share >= 1:
            return None
        window = max(self.window, min(LONGEST_WINDOW, self.window / share))
        flow = replace(self.flow, per_second=share * self.flow.per_second, rarest=1.0)
        expected = flow.per_second * self.treatment * window
        members = int(share * self.members)
        return replace(self, flow=flow, expected=expected, members=members, window=window)

    @property
    def words(self) -> str:
        """Say it to people."""
        rarest = self.at_rarest
        if rarest is None:
            return self._words
        each = min(rarest.expected, rarest.members)
        took = f", {rarest.seconds:,.0f} s" if math.isfinite(rarest.seconds) else ""
        return (
            f"{self._words}; {self.flow.rarest:.0%} of them call its rarest point, so {each:.3g} "
            f"treated reach it in {rarest.window:g} s{took}"
        )

    @property
    def _words(self) -> str:
        verdicts = [
            f"{name} takes {each.treated}" if each else f"{name} is never reached"
            for name, each in (("harmful", self.harmful), ("tolerated", self.tolerated))
        ]
        took = f", {self.seconds:,.0f} s" if math.isfinite(self.seconds) else ""
        return (
            f"{self.flow.request_class}: {60 * self.flow.per_second:,.4g} requests a minute, so "
            f"{min(self.expected, self.members):.3g} treated in {self.window:g} s; "
            f"{' and '.join(verdicts)}{took}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON, for the forecast."""
        return {
            "request_class": self.flow.request_class,
            "per_minute": 60 * self.flow.per_second,
            "expected": self.expected,
            "harmful": self.harmful and self.harmful.treated,
            "tolerated": self.tolerated and self.tolerated.treated,
            "seconds": self.seconds if math.isfinite(self.seconds) else None,
            "decides": self.decides,
            "words": self.words,
            "rarest": self._rarest(),
        }

    def _rarest(self) -> dict[str, Any] | None:
        rarest = self.at_rarest
        if rarest is None:
            return None
        return {
            "share": self.flow.rarest,
            "expected": rarest.expected,
            "seconds": rarest.seconds if math.isfinite(rarest.seconds) else None,
            "decides": rarest.decides,
        }

    def _enough(self, needed: Needed | None) -> bool:
        return needed is not None and needed.treated <= min(self.expected, self.members)


def needed(
    settings: Settings, verdict: Verdict, failing: float = 0.0, level: float = 1.0
) -> Needed | None:
    """Count the outcomes that this verdict takes; None where it is never reached.

    ``failing``: share of requests that fail by themselves. ``level``: the chance of a false
    ``harmful`` that e-LOND leaves to the next experiment. Of a finding that takes two experiments
    it is what the first one takes; the second, with its own window, takes about as much.
    """
    alone = max(min(level, settings.alpha_harmful), sys.float_info.min)
    thresholds = Thresholds(
        alpha_harmful=two_slots.alpha(alone, confirms=False, opening=None)
        if settings.confirm
        else alone,
        alpha_tolerated=settings.alpha_tolerated,
        delta=settings.delta,
        min_samples=settings.min_samples,
    )
    share = settings.treatment / (settings.treatment + settings.control)
    return _needed(settings.rule, thresholds, share, verdict, round(failing, 2))


@lru_cache(maxsize=1024)
def _needed(
    rule: VerdictRule, thresholds: Thresholds, share: float, verdict: Verdict, failing: float
) -> Needed | None:
    tests = tests_for(rule, thresholds, (1 - share) / share)
    counts = {True: 0, False: 0}
    for number in range(MOST):
        treated = math.floor((number + 1) * share) > math.floor(number * share)
        counts[treated] += 1
        here = counts[treated]
        failed = math.floor(here * failing) > math.floor((here - 1) * failing)
        try:
            tests.add(treated=treated, failed=failed or (treated and verdict == "harmful"))
        except ArithmeticError:  # a delta so near to 0 or 1 that there is no number in between
            return None
        if tests.final() == verdict:
            drawn = 1.0 if rule == "threshold" else 1 + share**2 / (1 - share)
            return Needed(round(drawn * counts[True]), round(drawn * counts[False]))
    return None


def estimate(settings: Settings, flow: Flow, level: float = 1.0) -> Estimate:
    """Return which verdicts a class of this traffic can reach under these settings."""
    return Estimate(
        flow=flow,
        expected=flow.per_second * settings.treatment * settings.window,
        members=settings.members,
        harmful=needed(settings, "harmful", flow.failing, level),
        tolerated=_tolerated(settings, flow, level),
        window=settings.window,
        treatment=settings.treatment,
    )


def _tolerated(settings: Settings, flow: Flow, level: float) -> Needed | None:
    """Count the outcomes that *tolerated* takes, the more the fewer devices report."""
    tests = needed(settings, "tolerated", flow.failing, level)
    if tests is None or flow.heard >= 1:
        return tests
    share, ratio = 1 - flow.heard * (1 - flow.failing), settings.control / settings.treatment
    wanted = takes(round(share, 2), settings.delta, settings.alpha_tolerated, ratio)
    if not math.isfinite(wanted):
        return None
    return Needed(max(tests.treated, round(wanted)), max(tests.control, round(ratio * wanted)))


def chosen(
    settings: Settings, given: Collection[str], flows: Sequence[Flow], level: float = 1.0
) -> Settings:
    """Return the settings with shares, window and unions chosen for their profile; those
    ``given`` stay.

    By the slowest class that can decide within what the profile allows: then those with more
    traffic can as well. Without such a class the profile goes to its limits.
    """
    if settings.profile is None:
        return settings
    caution = PROFILES[settings.profile]
    most = _shares(settings, caution.most)
    wanted = [(_surely(most, flow, level), flow.per_second) for flow in flows]
    share = max(
        (outcomes / (rate * caution.window) for outcomes, rate in wanted if rate),
        key=lambda each: (each <= caution.most, each if each <= caution.most else -each),
        default=caution.most,
    )
    share = min(max(share, caution.least), caution.most)
    seconds = [outcomes / (rate * share) for outcomes, rate in wanted if rate]
    window = max((each for each in seconds if each <= caution.window), default=caution.window)
    made = _shares(settings, share)
    choices: dict[str, Any] = {
        "treatment": made.treatment,
        "control": made.control,
        "window": float(math.ceil(max(window, DEFAULTS.window))) if flows else DEFAULTS.window,
        "max_union": caution.united,
    }
    return replace(settings, **{n: v for n, v in choices.items() if n not in given})


def _shares(settings: Settings, treatment: float) -> Settings:
    """Treat this share; put as many times as many in control as there may be."""
    control = max(treatment, min(RATIO * treatment, MOST_CONTROL))
    return replace(settings, treatment=treatment, control=control)


def why_not(settings: Settings, estimates: Sequence[Estimate], level: float = 1.0) -> str | None:
    """Return why no class can decide anything, with the figures and the ways out; None where one
    can.

    Nothing is said of classes of which too little was seen.
    """
    if not estimates or any(each.decides != "nothing" for each in estimates):
        return None
    said = [each.words for each in estimates[:NAMED]]
    if len(estimates) > NAMED:
        said.append(f"and {len(estimates) - NAMED} more classes")
    profile = f", at the limits of the profile {settings.profile}" if settings.profile else ""
    return (
        f"no class can decide anything in {settings.window:g} s with {settings.treatment:.2%} of "
        f"all devices treated{profile}. {'; '.join(said)}. {_ways_out(settings, estimates, level)}"
    )


def _ways_out(settings: Settings, estimates: Sequence[Estimate], level: float) -> str:
    best = min(estimates, key=lambda each: each.seconds)
    worst = most_treated(best.harmful, best.tolerated)
    if not math.isfinite(worst):
        return "No traffic would be enough: take a larger delta, alpha or share of control."
    ways = []
    longest = SETTINGS["window"].about.limits["le"]
    if best.seconds <= longest:
        ways.append(f"a window of {math.ceil(best.seconds)} s")
    wide = _shares(settings, PROFILES["staging"].most)
    seconds = estimate(wide, best.flow, level).seconds
    if seconds <= longest:
        ways.append(f"shares of {wide.treatment:g} and a window of {math.ceil(seconds)} s")
    if worst > settings.members:
        ways.append(f"{math.ceil(worst)} members")
    per_minute = 60 * worst / (settings.treatment * settings.window)
    ways.append(f"{per_minute:,.0f} requests a minute")
    return f"What would do for {best.flow.request_class}: {', or '.join(ways)}."


def most_treated(*verdicts: Needed | None) -> float:
    """Return the treated outcomes that all of these verdicts take; infinite where one is never
    reached."""
    return max(math.inf if each is None else each.treated for each in verdicts)


def _surely(settings: Settings, flow: Flow, level: float) -> float:
    """Return how many outcomes must be expected so that the needed ones nearly always come.

    Solves m - SURE·√m = n: outcomes that arrive at random vary by the root of their number.
    """
    spread = math.sqrt(flow.failing * (1 - flow.failing) / settings.min_samples)
    unlucky = flow.failing + SURE * spread  # so many of a few treated may fail by themselves
    verdicts = (needed(settings, each, unlucky, level) for each in ("harmful", "tolerated"))
    outcomes = most_treated(*verdicts)
    return ((SURE + math.sqrt(SURE**2 + 4 * outcomes)) / 2) ** 2
