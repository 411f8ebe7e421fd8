"""Writing down what an exploration knows as a certificate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from ldfi.solver.bits import members
from ldfi.solver.bound import LowerBound, lower_bound
from ldfi.solver.certificate import FORMAT, Certificate
from ldfi.solver.derivation import Derivation, Shown, shown_by
from ldfi.solver.entries import Doubt, Entry, entries_of, learn_firm
from ldfi.solver.equation import Equation
from ldfi.solver.findings import exact_findings, larger, minimal_failing_sets
from ldfi.solver.hypotheses import Hypotheses
from ldfi.solver.language import Language
from ldfi.solver.names import distinct, name_of, named, names_of
from ldfi.solver.open_hypotheses import Steps
from ldfi.solver.order import Fault, Faults, set_key
from ldfi.solver.rechecks import rechecks
from ldfi.solver.runs import Run, RunLog

LISTED = 1000
"""How many open hypotheses a certificate lists."""
BRANCHES = 100_000
"""Branches looked at to list them: about a second."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A snapshot of an exploration from which a certificate is written; it no longer changes.

    ``now``: what is open, by all ``runs`` together. ``down``: what is down throughout.
    """

    now: Hypotheses
    runs: RunLog
    down: Faults
    doubt: Doubt | None = None

    def certificate(self) -> Certificate:
        """Return the certificate; takes long for large explorations and may run in any thread.

        Raises InvalidRecord if two faults have the same name.
        """
        learn_firm(self.now.language, self.doubt)
        distinct(self.now.language.names)
        entries = entries_of(self.runs, self.doubt)
        return Certificate(_Writing(self.now, entries, self.down, self.doubt).data())

    def minimal_failing_sets(self) -> list[Faults]:
        """Return every inclusion-minimal failing set within the bounds, implied ones included."""
        return [self.now.language.faults(each) for each in minimal_failing_sets(self.now)]

    def lower_bound(self) -> LowerBound:
        """Return the least number of experiments that any strategy would have needed."""
        listed, everything = _open(self.now)
        minimal = minimal_failing_sets(self.now)
        return lower_bound(self.now, minimal, listed if everything else None)


def _open(world: Hypotheses) -> tuple[list[int], bool]:
    """List minimal open hypotheses, and say whether these are all."""
    # Counted in branches, not in seconds: the same knowledge is always written alike.
    enough = Steps(BRANCHES)
    listed = list(islice(world.minimal(stop=enough), LISTED + 1))
    return listed[:LISTED], len(listed) <= LISTED and not enough.used_up


@dataclass
class _Writing:
    """Writes one certificate."""

    now: Hypotheses
    entries: Sequence[Entry]
    down: Faults
    doubt: Doubt | None

    def data(self) -> dict[str, Any]:
        """Return the certificate's document."""
        tried = self._tried()
        marks = rechecks(self._runs, self._empty())
        proof = self._derivation()
        open_complete = self._all_listed and proof.pop("complete")
        if self.doubt is not None and self.doubt.unsettled:
            open_complete = False  # nobody knows what else they leave open
        violated = [run.good is False for run, mark in zip(self._runs, marks, strict=True) if mark]
        return {
            "format": FORMAT,
            "axioms": self._axioms(),
            "evidence": [
                each.written(number, recheck=mark)
                for number, (each, mark) in enumerate(zip(self.entries, marks, strict=True), 1)
            ],
            "findings": self._named(exact_findings(self.now, self._minimal)),
            "minimal_failing_sets": self._named(self._minimal),
            "larger_findings": self._named(self._larger),
            "open": self._named(self._opens),
            "open_complete": open_complete,
            "inconclusive": [
                {"faults": names_of(faults), "attempts": tried[faults]}
                for faults in sorted(tried, key=set_key)
                if self._undecided(faults)
            ],
            "violations": [
                {"kind": each.kind, "faults": names_of(each.faults)}
                for each in self.now.equation.violations()
            ],
            "rechecks": {"tried": len(violated), "violated": sum(violated)},
            "experiments": sum(tried.values()),
            "lower_bound": self._lower_bound(sum(tried.values()) - len(violated)),
            "doubt": self._doubt(),
            "derivation": proof,
        }

    @cached_property
    def _runs(self) -> list[Run]:
        """Return the run of each entry, by all runs; cautions of the firm ones are left empty."""
        nothing = Run("caution", frozenset(), frozenset())
        return [nothing if each.among == "firm" else each.run for each in self.entries]

    @cached_property
    def _firm(self) -> Hypotheses | None:
        """Return the hypotheses that the firm runs leave; None if all runs are firm."""
        if all(each.firmly is each.run and each.among == "both" for each in self.entries):
            return None
        equation = self._empty()
        for each in self.entries:
            if each.firmly is not None:
                equation.learn(each.firmly)
        return Hypotheses(self.now.language, equation, self.now.max_size)

    def _empty(self) -> Equation:
        equation = self.now.equation
        return Equation(
            self.now.language,
            self.down,
            deterministic=equation.deterministic,
            monotone=equation.monotone,
        )

    @cached_property
    def _minimal(self) -> list[int]:
        return _by_name(self.now.language, minimal_failing_sets(self.now))

    @cached_property
    def _larger(self) -> list[int]:
        return _by_name(self.now.language, larger(self.now, self._minimal))

    @cached_property
    def _listed(self) -> tuple[list[int], bool]:
        """Return hypotheses open by all runs or by the firm ones, and whether the list is whole."""
        found: set[int] = set()
        everything = True
        for world in filter(None, (self.now, self._firm)):
            listed, complete = _open(world)
            found.update(listed)
            everything = everything and complete
        return _by_name(self.now.language, found), everything

    @property
    def _opens(self) -> list[int]:
        return self._listed[0]

    @property
    def _all_listed(self) -> bool:
        return self._listed[1]

    def _named(self, sets: Iterable[int]) -> list[list[str]]:
        return [names_of(self.now.language.faults(each)) for each in sets]

    def _tried(self) -> Counter[Faults]:
        return Counter(run.injected for run in self._runs if run.origin == "injected")

    def _undecided(self, faults: Faults) -> bool:
        return self.now.is_open(self.now.language.variables(faults))

    def _axioms(self) -> dict[str, Any]:
        language, equation = self.now.language, self.now.equation
        return {
            "bounds": {
                "max_size": self.now.max_size,
                "protected": names_of(language.faults(language.protected)),
                "exclusions": named(language.exclusions - language.impossible),
                "down": names_of(self.down),
                **({"presumed": _presumed(language)} if language.presumed else {}),
                **({"no_injector": _unreached(language)} if language.unreached else {}),
            },
            "impossible": named(language.impossible),
            "language": {
                "faults": [name_of(each) for each in language.names],
                "domains": {
                    name_of(language.names[one]): names_of(language.names[each] for each in many)
                    for one, many in language.domains.items()
                },
                "implications": self._implications(),
            },
            "deterministic": equation.deterministic,
            "monotone": equation.monotone,
            "believed": {
                "survived": 1 if self.doubt is None else self.doubt.survived,
                "failed": 1 if self.doubt is None else self.doubt.failed,
            },
        }

    def _implications(self) -> list[dict[str, Any]]:
        """Write each with the first run that showed it; null where somebody said so."""
        names = self.now.language.names
        shown: dict[tuple[Fault, Fault], int] = {}
        for number, each in enumerate(self.entries, 1):
            for pair in each.run.caused:
                shown.setdefault(pair, number)
        return [
            {
                "stronger": name_of(names[one]),
                "weaker": name_of(names[other]),
                "run": shown.get((names[one], names[other])),
            }
            for one, many in self.now.language.weaker.items()
            for other in sorted(many)
        ]

    def _derivation(self) -> dict[str, Any]:
        labels = [(each, f"f{i}") for i, each in enumerate(self._minimal)]
        opens = [(each, f"o{i}") for i, each in enumerate(self._opens)]
        every = Derivation(self.now, self._everything_shown, labels + opens)
        complete, firmly = every.complete, None
        if self._firm is not None:
            bad = self._bad(firm=True)
            failing = [(self._firm.language.expand(each), f"b{bad[each]}") for each in bad]
            firm = Derivation(self._firm, self._shown(self._firm, firm=True), opens, failing)
            complete, firmly = complete and firm.complete, firm.steps
        return {
            "complete": complete,
            "steps": every.steps,
            "firm": firmly,
            "minimal": [self._proved(each) for each in self._minimal],
            "larger": [self._convicted(each, exactly=True) for each in self._larger],
        }

    def _read(self, *, firm: bool) -> Iterable[tuple[int, Run]]:
        for number, each in enumerate(self.entries, 1):
            run = each.firmly if firm else each.run
            if run is not None and run.teaches and (firm or each.among != "firm"):
                yield number, run

    def _bad(self, *, firm: bool) -> dict[Faults, int]:
        found: dict[Faults, int] = {}
        for number, run in self._read(firm=firm):
            if run.good is False:
                found.setdefault(run.failed, number)
        return found

    def _shown(self, world: Hypotheses, *, firm: bool) -> list[Shown]:
        numbers: dict[int, int] = {}
        closed: dict[int, int] = {}
        for number, run in self._read(firm=firm):
            if run.good and run.origin != "caution":
                position = world.equation.clause_of(run)
                if position is not None:
                    numbers.setdefault(position, number)
                else:
                    points = world.language.expand(run.failed) & ~world.equation.down
                    closed.setdefault(points, number)
        clauses = [numbers[each] for each in range(len(world.equation.clauses))]
        return shown_by(world, clauses, closed.__getitem__)

    @cached_property
    def _everything_shown(self) -> list[Shown]:
        return self._shown(self.now, firm=False)

    def _proved(self, variables: int) -> dict[str, Any]:
        """Return the runs that confirm a minimal failing set: one that failed, and those that show
        every fault of it to be needed."""
        rest = {
            name_of(self.now.language.names[each]): self._saved(variables & ~(1 << each))
            for each in members(variables)
        }
        return {"run": self._convicted(variables), "needed": rest}

    def _saved(self, variables: int) -> int:
        equation = self.now.equation
        touched = self.now.expand(variables) | equation.down
        alone = touched & ~equation.down
        for each in self._everything_shown:
            fits = each.exactly is None or each.exactly == alone
            binds = equation.monotone or not each.condition & ~touched
            if fits and binds and not each.clause & touched:
                return each.run
        raise AssertionError("a minimal failing set has a subset that nothing shows to be safe")

    def _convicted(self, variables: int, *, exactly: bool = False) -> int:
        down = self.now.equation.down
        touched = self.now.expand(variables) | down
        for fired, number in self._bad(firm=False).items():
            points = self.now.language.expand(fired)
            if not points & ~touched and (not exactly or not touched & ~(points | down)):
                return number
        raise AssertionError("a failing set was convicted by no run")

    def _lower_bound(self, tried: int) -> dict[str, Any]:
        bound = lower_bound(self.now, self._minimal)
        proved = bound.failing + len(bound.packing)  # what a checker can follow
        return {
            "failing": bound.failing,
            "packing": self._named(_by_name(self.now.language, bound.packing)),
            "total": proved,
            "ratio": round(tried / proved, 4) if proved else None,
        }

    def _doubt(self) -> dict[str, Any] | None:
        if self.doubt is None:
            return None
        times = Counter(run.injected for run in self._runs if run.origin == "injected" and run.good)
        unsettled = named(set(self.doubt.unsettled))
        return {
            "survived": len(times),
            "survived_once": sum(count == 1 for count in times.values()),
            "tried_once": sum(not self.now.is_open(each) for each in self._opens),
            "unsettled": unsettled,
        }


def _presumed(language: Language) -> list[dict[str, Any]]:
    """Return what is presumed harmful, each with the failing set it follows from."""
    written = [
        {"faults": names_of(faults), "of": names_of(failing)}
        for faults, failing in language.presumed.items()
    ]
    return sorted(written, key=lambda each: (len(each["faults"]), each["faults"]))


def _unreached(language: Language) -> dict[str, str]:
    """Return the protected faults that no injector can reach, each with what would help."""
    return {name_of(fault): text for fault, text in sorted(language.unreached.items(), key=str)}


def _by_name(language: Language, sets: Iterable[int]) -> list[int]:
    """Return the masks in the order of their names."""
    return sorted(sets, key=lambda each: (each.bit_count(), names_of(language.faults(each))))
