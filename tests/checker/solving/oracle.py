"""What a certificate says, held against its runs by brute force: every set within the bounds.

Written apart from the checker and the writer: plain sets, no clauses that are kept, no steps.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

Set = frozenset[str]


class Oracle:
    """Looks at one document, which is taken to be true as far as axioms and runs go."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.data = document
        self.axioms = document["axioms"]
        self.names: list[str] = self.axioms["language"]["faults"]
        self._whole: dict[str, Set] = {}
        self.down = self.whole(self.axioms["bounds"]["down"])
        self.experiments = [r for r in document["evidence"] if r["origin"] == "injected"]

    def whole(self, faults: Iterable[str]) -> Set:
        """All point faults that come with these."""
        for fault in faults:
            if fault not in self._whole:
                self._whole[fault] = self._spread(fault)
        return frozenset().union(*(self._whole[fault] for fault in faults))

    def _spread(self, fault: str) -> Set:
        language = self.axioms["language"]
        reached, size = {fault}, 0
        while len(reached) > size:
            size = len(reached)
            inside = [language["domains"].get(each, ()) for each in reached]
            reached.update(*inside)
            for each in language["implications"]:
                if each["stronger"] in reached:
                    reached.add(each["weaker"])
        return frozenset(e for e in reached if not language["domains"].get(e)) or Set({fault})

    def reach(self, fault: str) -> Set:
        return self.whole([fault]) | {fault}

    def admissible(self, faults: Set) -> bool:
        bounds = self.axioms["bounds"]
        presumed = [each["faults"] for each in bounds.get("presumed", ())]
        together = list(map(Set, (*bounds["exclusions"], *self.axioms["impossible"], *presumed)))
        for fault in faults:
            if self.reach(fault) & set(bounds["protected"]) or Set({fault}) in together:
                return False
            if self.whole([fault]) <= self.down:
                return False
        for each in together:
            if each <= faults and len(each) > 1:
                return False
            parts = [self.reach(fault) for fault in faults if not each <= self.reach(fault)]
            if each <= Set().union(*parts):
                return False
        return True

    def read(self, *, firm: bool, upto: int | None = None) -> Iterator[tuple[dict[str, Any], Set]]:
        """Runs from which anything follows, with what failed in them."""
        for run in self.data["evidence"][:upto]:
            failed = run["failed"]
            if run["origin"] == "injected":
                if run["good"] is None or (firm and run["firm"] is False):
                    continue
                if firm and run["firm"] is not True:
                    failed = run["firm"]
                known = run["good"] and run["support"] is not None
                if not known and not failed and run["injected"]:
                    continue
            if run["origin"] != "caution":
                yield run, self.whole(failed)

    def fails(self, faults: Iterable[str], *, firm: bool = False, upto: int | None = None) -> bool:
        touched = self.whole(faults) | self.down
        return any(
            run.get("good") is False and failed <= touched
            for run, failed in self.read(firm=firm, upto=upto)
        )

    def safe(
        self,
        faults: Iterable[str],
        *,
        firm: bool = False,
        natural: bool = False,
        upto: int | None = None,
    ) -> bool:
        touched = self.whole(faults) | self.down
        monotone = self.axioms["monotone"]
        good = [(r, f) for r, f in self.read(firm=firm, upto=upto) if r.get("good", True)]
        for run, failed in good:
            if natural and run["origin"] != "observed":
                continue
            if run["support"] is None:
                alone = touched - self.down
                if alone == failed - self.down or (monotone and alone <= failed - self.down):
                    return True
                continue
            relied = self.whole(run["support"]) - failed
            if not self.axioms["deterministic"]:
                for other, same in good:
                    observed = other["origin"] == "observed"
                    if (
                        same == failed
                        and other["support"] is not None
                        and (observed or not natural)
                    ):
                        relied |= self.whole(other["support"]) - failed
            relied |= self.cautions(failed, relied, firm=firm)
            if not relied & touched and (monotone or failed <= touched):
                return True
        return False

    def cautions(self, failed: Set, relied: Set, *, firm: bool) -> Set:
        found = Set()
        for run in self.data["evidence"]:
            if run["origin"] == "caution" and run["among"] in ("both", "firm" if firm else "all"):
                holds = self.whole(run["support"]) - failed
                alike = not self.axioms["deterministic"] or holds == relied
                if self.whole(run["failed"]) == failed and alike:
                    found |= holds
        return found

    def sets(self) -> Iterator[Set]:
        """Every set within the bounds."""
        usable = [each for each in self.names if self.admissible(Set({each}))]
        largest = self.axioms["bounds"]["max_size"]
        for size in range((len(usable) if largest is None else min(largest, len(usable))) + 1):
            for each in itertools.combinations(usable, size):
                if self.admissible(Set(each)):
                    yield Set(each)

    def wrong(self) -> list[str]:
        """What of it is not true."""
        return [
            *self.wrong_numbers(),
            *self.wrong_bounds(),
            *self.wrong_presumed(),
            *self.wrong_findings(),
            *self.wrong_open(firm=False),
            *self.wrong_open(firm=True),
            *self.wrong_rechecks(),
            *self.wrong_lower_bound(),
            *self.wrong_doubt(),
        ]

    def minimal(self, faults: Set) -> bool:
        return self.fails(faults) and all(
            self.safe(rest) and not self.fails(rest)
            for size in range(len(faults))
            for rest in map(Set, itertools.combinations(sorted(faults), size))
        )

    def wrong_bounds(self) -> Iterator[str]:
        largest = self.axioms["bounds"]["max_size"]
        if largest is not None and not (type(largest) is int and largest >= 1):
            yield "max_size"
        for each in self.axioms["language"]["implications"]:
            if each["run"] is not None:
                shown = self.data["evidence"][each["run"] - 1]["caused"]
                if [each["stronger"], each["weaker"]] not in shown:
                    yield "an implication that its run does not show"

    def wrong_presumed(self) -> Iterator[str]:
        apart = list(map(Set, self.axioms["impossible"]))
        for each in self.axioms["bounds"].get("presumed", ()):
            faults, of = Set(each["faults"]), Set(each["of"])
            if self.safe(faults) or not self.fails(of):
                yield f"{sorted(faults)} is presumed harmful for no reason"
            new, old = faults - of, of - faults
            if len(new) != len(old) or not all(
                any({one, other} in apart for other in old) for one in new
            ):
                yield f"{sorted(faults)} is no other way for {sorted(of)}"

    def wrong_numbers(self) -> Iterator[str]:
        if self.data["experiments"] != len(self.experiments):
            yield "experiments"
        tried = Counter(Set(run["injected"]) for run in self.experiments)
        vain = {
            each: count
            for each, count in tried.items()
            if self.admissible(each) and not self.fails(each) and not self.safe(each)
        }
        if {Set(e["faults"]): e["attempts"] for e in self.data["inconclusive"]} != vain:
            yield "inconclusive"
        bad = {Set(r["failed"]) for r, _ in self.read(firm=False) if r.get("good") is False}
        if len(self.data["violations"]) != sum(self.safe(each) for each in bad):
            yield "violations"
        strangers = {
            each
            for run in self.data["evidence"]
            for each in (*run["failed"], *(run["support"] or ()), *run.get("injected", ()))
        }
        if not strangers <= set(self.names):
            yield "names that are not in the language"

    def wrong_findings(self) -> Iterator[str]:
        findings = list(map(Set, self.data["findings"]))
        minimal = list(map(Set, self.data["minimal_failing_sets"]))
        largest = self.axioms["bounds"]["max_size"]
        for each in {*findings, *minimal}:
            if not self.minimal(each) or (largest is not None and len(each) > largest):
                yield f"{sorted(each)} is no minimal failing set"
        for each in map(Set, self.data["larger_findings"]):
            within = largest is None or len(each) <= largest
            if not self.fails(each) or (within and self.admissible(each) and self.minimal(each)):
                yield f"{sorted(each)} is not larger than the bounds"
        known = [*findings, *map(Set, self.data["larger_findings"])]
        for run, failed in self.read(firm=False):
            said = any(self.whole(each) <= failed | self.down for each in known)
            if run.get("good") is False and not said:
                yield f"{sorted(failed)} failed, and nothing says so"

    def wrong_open(self, *, firm: bool) -> Iterator[str]:
        if not self.data["open_complete"]:
            return
        opens = list(map(Set, self.data["open"]))
        findings = list(map(Set, self.data["findings"]))
        for each in self.sets():
            if any(open_ <= each for open_ in opens):
                continue
            if self.fails(each, firm=firm):
                said = any(self.whole(f) <= self.whole(each) | self.down for f in findings)
                if not said and not firm:
                    yield f"{sorted(each)} fails, and no finding says so"
            elif not self.safe(each, firm=firm):
                yield f"{sorted(each)} is open"

    def wrong_rechecks(self) -> Iterator[str]:
        seen: set[Set] = set()
        marks = []
        for run in self.experiments:
            injected, upto = Set(run["injected"]), run["number"] - 1
            marks.append(
                run["good"] is not None
                and injected not in seen
                and self.safe(injected, upto=upto)
                and not self.fails(injected, upto=upto)
            )
            if run["good"] is not None:
                seen.add(injected)
        if [run["recheck"] for run in self.experiments] != marks:
            yield "re-checks that are none"
        violated = sum(m and not r["good"] for m, r in zip(marks, self.experiments, strict=True))
        if self.data["rechecks"] != {"tried": sum(marks), "violated": violated}:
            yield "re-checks"

    def wrong_lower_bound(self) -> Iterator[str]:
        bound = self.data["lower_bound"]
        failing = {self.whole(e) | self.down for e in self.data["minimal_failing_sets"]}
        failing = {each for each in failing if not any(other < each for other in failing)}
        packing = list(map(Set, bound["packing"]))
        for each in packing:
            if not self.safe(each) or self.fails(each) or not self.admissible(each):
                yield "a set in the packing that is not safe"
            if self.safe(each, natural=True):
                yield "a set in the packing that needs no experiment"
        for one, other in itertools.combinations(packing, 2):
            if not self.fails(one | other):
                yield "two sets in the packing that one run may serve"
        total = len(failing) + len(packing)
        if (bound["failing"], bound["total"]) != (len(failing), total):
            yield "the lower bound"
        tried = self.data["experiments"] - self.data["rechecks"]["tried"]
        ratio = tried / total if total else None
        if None in (ratio, bound["ratio"]):
            if ratio != bound["ratio"]:
                yield "the ratio"
        elif not math.isclose(bound["ratio"], tried / total, abs_tol=1e-3):
            yield "the ratio"

    def wrong_doubt(self) -> Iterator[str]:
        believed, doubt = self.axioms["believed"], self.data["doubt"]
        good = Counter(Set(run["injected"]) for run in self.experiments if run["good"])
        bad = [Set(r["failed"]) for r in self.experiments if r["good"] is False]
        for run in self.experiments:
            if run["firm"] is not False and run["good"] is not None:
                if run["good"]:
                    times, wanted = good[Set(run["injected"])], believed["survived"]
                else:
                    times = sum(each <= Set(run["failed"]) for each in bad)
                    wanted = believed["failed"]
                if times < wanted:
                    yield "a run that is not firm"
        if doubt is not None:
            once = sum(count == 1 for count in good.values())
            if (doubt["survived"], doubt["survived_once"]) != (len(good), once):
                yield "doubt"
            shaky = sum(self.fails(each) or self.safe(each) for each in self.data["open"])
            if doubt["tried_once"] != shaky:
                yield "tried once"
            if doubt["unsettled"] and self.data["open_complete"]:
                yield "unsettled"
