"""What the two sequential tests say of outcomes, worked out anew.

It shares no code with the service: it is written from the same definitions (docs/verdicts.md), with
other arithmetic where there is a choice. Blocks of one treated outcome and the controls since the
last one; of each block the likelihood under a bet made beforehand, over that under the nearest
point of the null (Turner, Ly and Grünwald, arXiv 2106.02693). Of outcomes counted elsewhere a look
is one block, and many bets are made at once.

``order`` writes an outcome as one letter: ``c`` and ``t`` went well, ``C`` and ``T`` failed,
``d`` is a treated one that was accepted although something was missing from it. Since devices are
followed (:data:`LATER`): ``x`` (control) and ``y`` (treated) went well, and a later request of the
device failed; ``u`` is a treated one that went well and proves nothing, for its trace has a hole,
and ``v`` one whose device failed later.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

LETTERS: Final = frozenset("cCtTd")
LATER: Final = frozenset("xyuv")
"""Those that records have which say for how long devices were followed."""
CONTROL: Final = frozenset("cCx")
TREATED: Final = frozenset("tTdyuv")
CLOSE: Final = 1e-6
"""Logarithms of evidence that differ by less are the same: sums may be taken in another order."""

_FAILURES: Final = 2
_REACH: Final = 3
_SHARE: Final = 0.75
_RATES: Final = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.96, 0.99)
_EVENLY: Final = 0.05
_SLOT: Final = 0.05

_HEARD_BETS: Final = tuple(math.sin(math.pi * step / 40) ** 2 for step in range(1, 20))

Look = tuple[int, int, int, int]
"""Requests of control, of these failed, treated requests, of these failed."""


@dataclass(frozen=True, slots=True)
class JudgingRule:
    """By which figures outcomes were judged. ``ratio``: controls there usually are to a treated
    device. ``alpha``: the chance of a false *harmful* that was run."""

    name: str
    alpha: float
    alpha_tolerated: float
    delta: float
    min_samples: int
    ratio: float


@dataclass(slots=True)
class Weighed:
    """How the evidence stands. Logarithms; ``treated`` outcomes of which ``failed`` are in it."""

    rule: JudgingRule
    worse: float = 0.0
    not_worse: float = 0.0
    treated: int = 0
    failed: int = 0

    def says(self, slack: float = 0.0) -> str | None:
        """Return the verdict that is reached; evidence may fall short of it by ``slack``."""
        bar = -math.log(self.rule.alpha) - slack
        if self.failed >= _FAILURES and self.worse >= bar:
            return "harmful"
        bar = -math.log(self.rule.alpha_tolerated) - slack
        if self.treated >= self.rule.min_samples and self.not_worse >= bar:
            return "tolerated"
        return None

    def decided(self, *, stands: bool) -> bool:
        """Return whether nothing that comes changes it. ``stands``: tolerated does not either."""
        said = self.says()
        return said == "harmful" or (stands and said is not None)

    def verdicts(self) -> set[str]:
        """Return the verdicts that may be given: two only if the evidence is right at the
        threshold."""
        return {self.says(slack) or "inconclusive" for slack in (CLOSE, -CLOSE)}


def failed_of(order: str, *, stays: bool) -> str:
    """Return the letters as they are weighed: those of first requests, or of devices for as long as
    they took part (``stays``)."""
    later = "CTT" if stays else "ctu"
    return order.translate(str.maketrans("xyvd", f"{later}t"))


def weigh(rule: JudgingRule, order: str, *, stands: bool = False) -> Weighed:
    """Weigh outcomes in the order in which their requests began. ``stands``: by an earlier rule
    evidence stood still as soon as it was tolerated, too, whoever came after."""
    now = Weighed(rule)
    most = max(1, math.ceil(_REACH * rule.ratio))
    seen = failed = 0
    for letter, controls in _blocks(failed_of(order, stays=False), most):
        treated = letter == "T"
        if now.decided(stands=stands):
            break
        k, bad = len(controls), sum(controls)
        p0 = (0.1 + failed) / (10 + seen)
        worse = (0.9 + now.failed) / (1 + now.treated)
        same = (0.05 + now.failed) / (1 + now.treated)
        block: Look = (k, bad, 1, int(treated))
        if worse > p0:
            pooled = (k * p0 + worse) / (k + 1)
            now.worse += _log(block, p0, worse) - _log(block, pooled, pooled)
        if same < p0 + rule.delta:
            a = nearest(p0, same, rule.delta, k)
            gained = _log(block, p0, same) - _log(block, a, a + rule.delta)
            now.not_worse += min(gained, 0.0) if letter == "u" else gained
        seen, failed = seen + k, failed + bad
        now.treated, now.failed = now.treated + 1, now.failed + treated
    return now


def weigh_looks(rule: JudgingRule, looks: Iterable[Look], *, stands: bool = False) -> Weighed:
    """Weigh what somebody else has counted, look by look. ``stands``: as of :func:`weigh`."""
    now = Weighed(rule)
    bets = list(product(_RATES, _RATES))
    past = [0.0] * len(bets)
    block: Look = (0, 0, 0, 0)
    for look in looks:
        if now.decided(stands=stands):
            break
        block = (block[0] + look[0], block[1] + look[1], block[2] + look[2], block[3] + look[3])
        n0, _, n1, failed = block
        if not (n0 and n1):
            continue
        top = max(past)
        shares = [math.exp(each - top) for each in past]
        whole = math.fsum(shares)
        weights = [(1 - _EVENLY) * each / whole + _EVENLY / len(bets) for each in shares]
        told = [_log(block, p0, p1) for p0, p1 in bets]
        worse, not_worse = [], []
        for (p0, p1), weight, log in zip(bets, weights, told, strict=True):
            if p1 > p0:
                pooled = (n0 * p0 + n1 * p1) / (n0 + n1)
                worse.append((weight, log - _log(block, pooled, pooled)))
            if p1 < p0 + rule.delta:
                a = nearest(p0, p1, rule.delta, n0 / n1)
                not_worse.append((weight, log - _log(block, a, a + rule.delta)))
        now.worse += _mean(worse)
        now.not_worse += _mean(not_worse)
        now.treated, now.failed = now.treated + n1, now.failed + failed
        past = [before + each for before, each in zip(past, told, strict=True)]
        block = (0, 0, 0, 0)
    return now


def threshold(rule: JudgingRule, treated: Iterable[tuple[int, int]]) -> str:
    """Judge by the rule that Netflix published: more than three quarters of enough have failed."""
    total = failed = 0
    for many, bad in treated:
        total, failed = total + many, failed + bad
        if total >= rule.min_samples and failed > _SHARE * total:
            return "harmful"
    return "inconclusive" if total < rule.min_samples else "tolerated"


def heard_and_well(delta: float, look: Look) -> float:
    """Return the logarithm of the evidence that *heard and well* is no rarer by a share of δ.

    ``look``: devices of either arm that may have reached the point, and those of them that were not
    heard of and well. Each bet says that both arms have the same share of these; against it stands
    the nearest pair with w₁ = (1 - δ)w₀, where w is one less that share.
    """
    n0, _, n1, _ = look
    if not (n0 and n1):
        return 0.0
    terms = []
    for share in _HEARD_BETS:
        a = _rarer(share, delta, n0 / n1)
        null = _log(look, a, a + delta * (1 - a))
        terms.append((1 / len(_HEARD_BETS), _log(look, share, share) - null))
    return _mean(terms)


def _rarer(share: float, delta: float, k: float) -> float:
    """Find the a for which (a, a + δ(1 - a)) is nearest to (share, share), control weighed k times:
    the slope of the divergence has the sign of a cubic's factor that rises through zero once."""
    low, high = 0.0, share
    for _ in range(80):
        a = (low + high) / 2
        b = a + delta * (1 - a)
        if k * (a - share) * b + (b - share) * a > 0:
            high = a
        else:
            low = a
    return (low + high) / 2


def level(own: float, given: float | None, slot: str, opening: tuple[float, float] | None) -> float:
    """Return how seldom *harmful* may be said by chance: of one proof over two slots.

    ``slot``: ``alone`` proves all by itself, ``first`` and ``second`` do so together. ``opening``:
    the evidence (a logarithm) and the level that the first one left.
    """
    alone = own if given is None else min(own, given)
    if slot == "first":
        return max(alone, _SLOT)
    if slot == "alone" or opening is None:
        return alone
    return min(_SLOT, opening[1] * math.exp(opening[0]))


def nearest(p0: float, p1: float, delta: float, k: float) -> float:
    """Find the a for which (a, a + δ) is nearest to (p₀, p₁), control weighed k times.

    There k·(a - p₀)/(a(1 - a)) + (b - p₁)/(b(1 - b)) is zero, with b = a + δ: times both
    denominators, a cubic, which is below zero at one end of where it can be and above at the other.
    """

    def slope(a: float) -> float:
        b = a + delta
        return k * (a - p0) * b * (1 - b) + (b - p1) * a * (1 - a)

    low, high = max(0.0, min(p0, p1 - delta)), min(1 - delta, max(p0, p1 - delta))
    below, above = slope(low), slope(high)
    if below == 0 and low > 0:
        return low
    a = (low + high) / 2
    for turn in range(200):
        # the secant, and every third time the middle: it cannot hang at one end
        a = (
            (low + high) / 2
            if turn % 3 == 2 or above == below
            else high - above * (high - low) / (above - below)
        )
        a = min(max(a, low), high) if low < a < high else (low + high) / 2
        here = slope(a)
        if here > 0:
            high, above = a, here
        else:
            low, below = a, here
        if high - low <= 1e-15 or abs(here) < 1e-17:
            break
    return (low + high) / 2 if high - low <= 1e-12 else a


def _blocks(order: str, most: int) -> Iterator[tuple[str, Sequence[bool]]]:
    """Pair each treated outcome with the controls since the one before, the newest ``most``."""
    controls: list[bool] = []
    waiting: str | None = None
    for letter in order:
        if letter in "cC":
            controls = [*controls, letter == "C"][-most:]
        else:
            waiting = letter
        if waiting is not None and controls:
            yield waiting, controls
            waiting, controls = None, []


def _log(block: Look, p0: float, p1: float) -> float:
    """Return the log-likelihood of a block's counts where these are the rates."""
    n0, f0, n1, f1 = block
    terms = ((f0, p0), (n0 - f0, 1 - p0), (f1, p1), (n1 - f1, 1 - p1))
    return math.fsum(many * math.log(share) for many, share in terms if many)


def _mean(terms: Sequence[tuple[float, float]]) -> float:
    """Return the logarithm of a weighted mean, given logarithms."""
    top = max(log for _, log in terms)
    whole = math.fsum(weight for weight, _ in terms)
    return top + math.log(math.fsum(w * math.exp(log - top) for w, log in terms) / whole)
