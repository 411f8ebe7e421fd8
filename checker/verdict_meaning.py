"""What the verdicts on a certificate meant: by which figures the runs that it rests on were judged.

A fault that hurts half is *tolerated* where somebody asked for no more than that. So a certificate
is worth no more than its worst verdict, and this looks for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ldfi.checker.outcome import AnyRecord
from ldfi.checker.record import RunRecord

CONFIDENCE: Final = 0.95
"""Of the bound on what is presumed safe and is not."""
RULES: Final = {"tests": "sequential", "threshold": "threshold"}
"""Names of rules, as people and as records have them."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """The worst of what decided: ``delta`` (the rise in the failure rate that *tolerated* rules
    out), ``alpha`` (the chance of a false verdict, of either sort), ``rules``, ``samples`` (treated
    requests that counted), ``heard`` (the share of devices of whose first request was heard),
    ``patience`` (seconds that failure contexts were sure to hold). None where nothing says it;
    ``unheard``, ``unheld``: how many *tolerated* do not say the last two. ``unjudged``: how many
    experiments decided and do not say by what. ``presumed``: the share of the sets that are
    presumed safe and are not, which it exceeds with a chance of 5 %; None where more faults are not
    taken never to help. ``unseen``: the share of calls somewhere that cannot be seen, at most
    (95 %); None where nothing is said of it. ``gaps``: where that is, in words."""

    delta: float | None
    alpha: float | None
    rules: tuple[str, ...]
    samples: int | None
    unjudged: int
    presumed: float | None
    heard: float | None = None
    patience: float | None = None
    unheard: int = 0
    unheld: int = 0
    unseen: float | None = None
    gaps: tuple[str, ...] = ()

    @classmethod
    def of(cls, certificate: dict[str, Any], records: Sequence[AnyRecord]) -> Meaning:
        """Return the meaning of a certificate's verdicts. ``records``: those that its runs
        carry."""
        judged = [
            each
            for each in records
            if isinstance(each, RunRecord) and each.verdict in ("harmful", "tolerated")
        ]
        survived = [each for each in judged if each.verdict == "tolerated"]
        decided = sum(
            run["origin"] == "injected" and run["good"] is not None
            for run in certificate["evidence"]
        )
        heard = [each.reports.share for each in survived if each.reports is not None]
        held = [each.held for each in survived if each.held is not None]
        return cls(
            delta=max((each.rule.delta for each in survived), default=None),
            alpha=max(map(_alpha, judged), default=None),
            rules=tuple(sorted({each.rule.name for each in judged})),
            samples=min((each.arms.treated for each in survived), default=None),
            unjudged=decided - len(judged),
            presumed=_presumed(certificate),
            heard=min(heard, default=None),
            patience=min(held, default=None),
            unheard=len(survived) - len(heard),
            unheld=len(survived) - len(held),
            unseen=_unseen(certificate.get("unseen")),
            gaps=tuple(map(_gap, (certificate.get("unseen") or {}).get("gaps", ()))),
        )

    def words(self) -> Iterator[str]:
        """Say it to people."""
        if self.delta is not None and self.samples is not None:
            yield f"a rise in the failure rate of {self.delta:g} or more was ruled out (δ)"
            yield f"by {self.samples} treated requests or more"
        if self.alpha is not None:
            yield f"each verdict is false with a chance of {self.alpha:g} at most (α)"
        if self.rules:
            names = [name for name, rule in RULES.items() if rule in self.rules]
            yield f"by the rule {' and '.join(names)}"
        if self.heard is not None:
            yield f"of {100 * self.heard:.3g} % of the devices or more it was heard how they fared"
        if self.patience is not None:
            yield f"failure contexts held for {self.patience:.3g} s or more"
        if self.unjudged:
            yield f"{self.unjudged} experiments do not say by what they were judged"
        if self.presumed is not None:
            share = f"{100 * self.presumed:.2g} %" if self.presumed < 1 else "any share"
            by = "by re-checks of single faults and of more (at 95 %)"
            yield f"{share} of the sets presumed safe may not be, {by}"
        if self.gaps:
            yield f"cannot see: {', '.join(self.gaps)}"


@dataclass(frozen=True, slots=True)
class Required:
    """What verdicts have to have meant; None where nobody asks."""

    delta: float | None = None
    alpha: float | None = None
    rule: str | None = None
    presumed: float | None = None
    heard: float | None = None
    patience: float | None = None
    unseen: float | None = None


def lacking(meaning: Meaning, required: Required) -> Iterator[str]:
    """Return where verdicts meant less than is required."""
    asks = (required.delta, required.alpha, required.rule, required.heard, required.patience)
    if any(each is not None for each in asks) and meaning.unjudged:
        yield f"{meaning.unjudged} experiments do not say by what they were judged"
    for name, found, most in (
        ("δ", meaning.delta, required.delta),
        ("α", meaning.alpha, required.alpha),
        ("share presumed safe that may not be", meaning.presumed, required.presumed),
    ):
        if most is not None and found is not None and found > most:
            yield f"its {name} is {found:.4g}, and {most:g} is asked for"
    for what, found, least, unsaid in (
        ("share of reports heard", meaning.heard, required.heard, meaning.unheard),
        ("patience in seconds", meaning.patience, required.patience, meaning.unheld),
    ):
        if least is not None and unsaid:
            yield f"{unsaid} experiments do not say their {what}, and {least:g} is asked for"
        if least is not None and found is not None and found < least:
            yield f"its {what} is {found:.4g}, and {least:g} is asked for"
    if required.unseen is not None and meaning.unseen is None:
        yield "it does not say what share of calls cannot be seen"
    elif required.unseen is not None and (meaning.unseen or 0.0) > required.unseen:
        share = f"up to {meaning.unseen:.4g} of calls cannot be seen"
        yield f"{share}, and {required.unseen:g} is asked for: {', '.join(meaning.gaps)}"
    if required.rule is not None:
        others = [each for each in meaning.rules if each != RULES[required.rule]]
        yield from (f"verdicts are by the rule {each}" for each in _called(others))


def upper_bound(failed: int, tried: int, confidence: float = CONFIDENCE) -> float:
    """Return Clopper and Pearson's one-sided upper bound on a share, of which ``failed`` of
    ``tried`` were seen."""
    if failed >= tried:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        share = (low + high) / 2
        if _at_most(failed, tried, share) > 1 - confidence:
            low = share
        else:
            high = share
    return high


def _at_most(failed: int, tried: int, share: float) -> float:
    """Return the chance of seeing so few or fewer."""
    total = term = (1 - share) ** tried
    for each in range(1, failed + 1):
        term *= (tried - each + 1) / each * share / (1 - share)
        total += term
    return total


def _presumed(certificate: dict[str, Any]) -> float | None:
    """Bound the share of the sets presumed safe that are not: that of single faults and that of
    more at once is the larger one at least, and re-checks are drawn from each at random."""
    axioms = certificate["axioms"]
    if not axioms["monotone"]:
        return None
    tried = [run for run in certificate["evidence"] if run.get("recheck")]
    bounds = []
    for single in (True, False) if axioms["bounds"]["max_size"] != 1 else (True,):
        outcomes = [run["good"] for run in tried if (len(run["injected"]) == 1) == single]
        bounds.append(upper_bound(outcomes.count(False), len(outcomes)))
    return max(bounds)


def _unseen(said: dict[str, Any] | None) -> float | None:
    """Compute the share that cannot be seen at most; None where nothing is said of it."""
    if said is None:
        return None
    bounds = (upper_bound(each["calls"], each["arrivals"]) for each in said["gaps"])
    return max(bounds, default=0.0)


def _gap(said: dict[str, Any]) -> str:
    where = f" at {said['at']}" if said["at"] else ""
    return f"{said['calls']} of {said['arrivals']} of {said['service']}{where} ({said['why']})"


def _alpha(record: RunRecord) -> float:
    return record.rule.alpha_tolerated if record.verdict == "tolerated" else record.own


def _called(rules: Iterable[str]) -> Iterator[str]:
    names = {rule: name for name, rule in RULES.items()}
    yield from (names[each] for each in rules)
