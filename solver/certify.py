"""Writing down what an exploration knows as a certificate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from ldfi.solver.bound import LowerBound, lower_bound
from ldfi.solver.certificate import FORMAT, Certificate
from ldfi.solver.equation import Equation
from ldfi.solver.errors import InvalidRecord
from ldfi.solver.findings import exact_findings, larger, minimal_failing_sets
from ldfi.solver.hypotheses import Hypotheses
from ldfi.solver.listing import Steps
from ldfi.solver.order import Fault, Faults, set_key

LISTED = 1000
"""How many open hypotheses a certificate lists."""
BRANCHES = 100_000
"""Branches looked at to list them: about a second."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What the explorer knows besides the evidence."""

    max_union: int | None
    down: Faults
    experiments: int
    rechecked: int
    violated: int
    attempts: Mapping[Faults, int]


@dataclass(frozen=True, slots=True)
class Statement:
    """All that a certificate says, and that takes no time to say."""

    now: Hypotheses
    progress: Progress

    def certificate(self) -> Certificate:
        """Write the certificate. Raises InvalidRecord if two faults have the same name."""
        return _certify(self.now, self.progress, *self._listed())

    def lower_bound(self) -> LowerBound:
        """Bound from below what any strategy would have needed to know this much."""
        listed, all_listed = self._listed()
        minimal = minimal_failing_sets(self.now)
        return lower_bound(self.now, minimal, listed if all_listed else None)

    def _listed(self) -> tuple[list[int], bool]:
        """List minimal open hypotheses, and say whether these are all."""
        # Counted in branches, not in seconds: the same knowledge is always written alike.
        enough = Steps(BRANCHES)
        listed = list(islice(self.now.minimal(stop=enough), LISTED + 1))
        return listed[:LISTED], len(listed) <= LISTED and not enough.used_up


def _certify(
    now: Hypotheses, progress: Progress, still_open: list[int], all_listed: bool
) -> Certificate:
    language, equation = now.language, now.equation
    _distinct(language.names)
    minimal = minimal_failing_sets(now)
    bound = lower_bound(now, minimal, still_open if all_listed else None)
    tried = progress.experiments - progress.rechecked
    proved = bound.failing + len(bound.packing)  # what the checker can follow

    def masks(sets: Iterable[int]) -> list[list[str]]:
        return named(language.faults(each) for each in sets)

    data: dict[str, Any] = {
        "format": FORMAT,
        "bounds": _bounds(now, progress),
        "language": {
            "faults": [_name(each) for each in language.names],
            "domains": _relation(language.names, language.domains),
            "implications": _relation(language.names, language.weaker),
        },
        "deterministic": equation.deterministic,
        "monotone": equation.monotone,
        "evidence": _evidence(equation),
        "findings": masks(exact_findings(now, minimal)),
        "minimal_failing_sets": masks(minimal),
        "larger_findings": masks(larger(now, minimal)),
        "open": masks(still_open),
        "open_complete": all_listed,
        "inconclusive": [
            {"faults": _names(faults), "attempts": count}
            for faults, count in sorted(progress.attempts.items(), key=lambda i: set_key(i[0]))
        ],
        "violations": [
            {"kind": each.kind, "faults": _names(each.faults)} for each in equation.violations()
        ],
        "rechecks": {"tried": progress.rechecked, "violated": progress.violated},
        "experiments": progress.experiments,
        "lower_bound": {
            "failing": bound.failing,
            "packing": masks(bound.packing),
            "total": proved,
            "ratio": round(tried / proved, 4) if proved else None,
            "covering": asdict(bound.covering),
            "cut_short": bound.cut_short,
        },
    }
    return Certificate(data)


def _bounds(now: Hypotheses, progress: Progress) -> dict[str, Any]:
    language = now.language
    return {
        "max_size": now.max_size,
        "max_union": progress.max_union,
        "protected": _names(language.faults(language.protected)),
        "exclusions": named(language.exclusions),
        "down": _names(progress.down),
    }


def _evidence(equation: Equation) -> dict[str, Any]:
    good = [
        {
            "origin": run.origin,
            "failed": _names(run.failed),
            "support": None if run.support is None else _names(run.support),
            "count": run.count,
            "traces": list(run.traces),
        }
        for run in equation.good.values()
    ]
    bad = [
        {"fired": _names(run.fired), "count": run.count, "traces": list(run.traces)}
        for run in equation.bad.values()
    ]
    return {"good": good, "bad": bad}


def named(sets: Iterable[Faults]) -> list[list[str]]:
    """Name sets of faults, each sorted, smaller ones first."""
    return sorted((_names(each) for each in sets), key=lambda each: (len(each), each))


def _name(fault: Fault) -> str:
    return fault if isinstance(fault, str) else repr(fault)


def _names(faults: Iterable[Fault]) -> list[str]:
    return sorted(_name(each) for each in faults)


def _relation(names: list[Fault], relation: Mapping[int, Iterable[int]]) -> dict[str, list[str]]:
    return {
        _name(names[one]): _names(names[each] for each in many) for one, many in relation.items()
    }


def _distinct(names: list[Fault]) -> None:
    seen: dict[str, Fault] = {}
    for fault in names:
        other = seen.setdefault(_name(fault), fault)
        if other is not fault:
            raise InvalidRecord(f"two faults are both written {_name(fault)!r}; name them apart")
