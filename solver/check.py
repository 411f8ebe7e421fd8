"""An independent check of a certificate, from its evidence alone.

It shares no code with the rest of the solver and needs none of it: no SAT, no bit masks, no clever
search. It trusts only that the recorded runs happened and that more faults never help. It builds
the clauses from the good runs, convicts the findings by the bad ones, and walks through every set
of faults within the bounds: at a set that some good run shows to be survived it must go on only by
the faults which that run relied on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

FORMAT = "ldfi-certificate/1"


def check(certificate: dict[str, Any]) -> list[str]:
    """Say in words what is wrong with a certificate; an empty list if nothing is."""
    if certificate.get("format") != FORMAT:
        return [f"this is no certificate in the format {FORMAT!r}"]
    try:
        return list(_Check(certificate).problems())
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        return [f"the certificate is malformed: {type(error).__name__}: {error}"]


Clause = tuple[frozenset[str], frozenset[str]]
"""What failed, and what was relied on."""


class _Check:
    """The certificate's evidence, read once."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.max_size: int | None = data["bounds"]["max_size"]
        self.domains = {name: set(many) for name, many in data["language"]["domains"].items()}
        self.weaker = {name: set(many) for name, many in data["language"]["implications"].items()}
        self.expansions: dict[str, frozenset[str]] = {}
        self.down = self.expand(data["bounds"]["down"])
        self.protected = set(data["bounds"]["protected"])
        self.exclusions = [frozenset(each) for each in data["bounds"]["exclusions"]]
        good = data["evidence"]["good"]
        self.bad = [self.expand(run["fired"]) for run in data["evidence"]["bad"]]
        self.clauses = self.clauses_of(good)
        self.natural = self.clauses_of([run for run in good if run["origin"] == "observed"])
        self.survived = [
            self.expand(run["failed"]) - self.down for run in good if run["support"] is None
        ]
        self.variables = [
            name for name in data["language"]["faults"] if self.admissible(frozenset({name}))
        ]

    def expand(self, faults: Iterable[str]) -> frozenset[str]:
        """List the point faults that these bring about."""
        result: set[str] = set()
        for fault in faults:
            if fault not in self.expansions:
                seen, todo, points = {fault}, [fault], set()
                while todo:
                    here = todo.pop()
                    if not self.domains.get(here):
                        points.add(here)
                    further = self.domains.get(here, set()) | self.weaker.get(here, set())
                    todo += further - seen
                    seen |= further
                self.expansions[fault] = frozenset(points or {fault})
            result |= self.expansions[fault]
        return frozenset(result)

    def clauses_of(self, runs: list[dict[str, Any]]) -> list[Clause]:
        """Make one clause per set of failed points: the union of the supports, less what failed."""
        groups: dict[object, Clause] = {}
        for run in runs:
            if run["support"] is not None:
                failed = self.expand(run["failed"])
                clause = self.expand(run["support"]) - failed
                key = (failed, clause) if self.data["deterministic"] else failed
                condition, known = groups.get(key, (failed, frozenset()))
                groups[key] = (condition, known | clause)
        return list(groups.values())

    def admissible(self, faults: frozenset[str]) -> bool:
        """Tell whether these may be proposed together."""
        return not any(
            frozenset({fault}) in self.exclusions
            or self.reach(fault) & self.protected
            or self.expand({fault}) <= self.down
            for fault in faults
        ) and not any(self.excluded(faults, exclusion) for exclusion in self.exclusions)

    def excluded(self, faults: frozenset[str], exclusion: frozenset[str]) -> bool:
        """Tell whether these bring an exclusion about; one that does so alone was named as a
        whole."""
        parts = [self.reach(fault) for fault in faults]
        none: frozenset[str] = frozenset()
        return exclusion <= none.union(*(part for part in parts if not exclusion <= part))

    def reach(self, fault: str) -> frozenset[str]:
        """List the fault and what it brings about."""
        return self.expand({fault}) | {fault}

    def fails(self, faults: Iterable[str]) -> bool:
        """Tell whether a failed run's faults are among what these bring about."""
        touched = self.expand(faults) | self.down
        return any(fired <= touched for fired in self.bad)

    def safe(self, faults: Iterable[str]) -> bool:
        """Tell whether a good run shows that these are survived."""
        expansion = self.expand(faults)
        touched = expansion | self.down
        return self.seen(expansion - self.down) or bool(self.unhit(touched))

    def seen(self, faults: frozenset[str]) -> bool:
        """Tell whether these, or more of them if more faults never help, were seen to be survived
        by a run of which nobody knows what it relied on."""
        return faults in self.survived or (
            bool(self.data["monotone"]) and any(faults <= each for each in self.survived)
        )

    def unhit(self, touched: frozenset[str]) -> list[frozenset[str]]:
        """List the supports that these leave alone; if more faults may help, of subsets' runs
        only."""
        return [
            clause
            for failed, clause in self.clauses
            if not clause & touched and (self.data["monotone"] or failed <= touched)
        ]

    def problems(self) -> Iterator[str]:
        """Say all that is wrong."""
        yield from self.wrong_findings()
        yield from self.wrong_violations()
        yield from self.wrong_bound()
        if self.data["open_complete"]:
            yield from self.missed()
            if "rests_on" in self.data:
                firm = _Check({**self.data, "evidence": self.data["rests_on"]})
                yield from (f"by what it rests on, {each}" for each in firm.missed())

    def wrong_findings(self) -> Iterator[str]:
        """Report findings that were not seen to fail, or are not minimal, or contradict what is
        open."""
        minimal = [frozenset(each) for each in self.data["minimal_failing_sets"]]
        for each in minimal:
            if not self.fails(each):
                yield f"no failed run convicts {sorted(each)}"
            for fault in each:
                if not self.safe(each - {fault}):
                    yield f"{sorted(each)} may not be minimal: nothing shows {fault!r} is needed"
        findings = [frozenset(each) for each in self.data["findings"]]
        for each in findings:
            if each not in minimal:
                yield f"the finding {sorted(each)} is not among the minimal failing sets"
        for each in minimal:
            touched = self.expand(each)
            if not any(self.expand(f) <= touched and len(f) <= len(each) for f in findings):
                yield f"{sorted(each)} fails, and no finding says so"
        for each in map(frozenset, self.data["larger_findings"]):
            if not self.fails(each):
                yield f"no failed run convicts {sorted(each)}"
        for fired in self.bad:
            said = [*minimal, *map(frozenset, self.data["larger_findings"])]
            opens = map(frozenset, self.data["open"])
            if not any(self.expand(each) <= fired | self.down for each in (*said, *opens)):
                yield f"the failure of {sorted(fired)} is explained by no finding"

    def wrong_violations(self) -> Iterator[str]:
        """Report contradictions in the evidence that the certificate does not declare."""
        declared = [self.expand(each["faults"]) for each in self.data["violations"]]
        for run in self.data["evidence"]["bad"]:
            fired = self.expand(run["fired"])
            if self.safe(run["fired"]) and not any(fired <= each for each in declared):
                yield f"{run['fired']} failed although a good run shows it safe; not declared"

    def wrong_bound(self) -> Iterator[str]:
        """Report a lower bound that does not follow, or a number of experiments that cannot be."""
        bound, evidence = self.data["lower_bound"], self.data["evidence"]
        minimal = {self.expand(each) | self.down for each in self.data["minimal_failing_sets"]}
        exact = [one for one in minimal if not any(other < one for other in minimal)]
        packing = [frozenset(each) for each in bound["packing"]]
        for number, one in enumerate(packing):
            touched = self.expand(one) | self.down
            if not self.safe(one) or self.fails(one) or not self.admissible(one):
                yield f"{sorted(one)} in the lower bound's packing is not a safe set"
            if self.max_size is not None and len(one) > self.max_size:
                yield f"{sorted(one)} in the lower bound's packing is too large"
            if not all(clause & touched for _, clause in self.natural):
                yield f"{sorted(one)} in the lower bound's packing needs no experiment"
            for other in packing[:number]:
                if not self.fails(one | other):
                    yield f"{sorted(one)} and {sorted(other)} may share a good run"
        if bound["failing"] != len(exact) or bound["total"] != len(exact) + len(packing):
            yield f"the lower bound is {len(exact)} + {len(packing)}, not {bound['total']}"
        tried = self.data["experiments"] - self.data["rechecks"]["tried"]
        if bound["total"] and abs(bound["ratio"] - tried / bound["total"]) > 1e-3:
            yield f"the ratio is {tried / bound['total']:.4f}, not {bound['ratio']}"
        runs = sum(run["count"] for run in evidence["good"] if run["origin"] == "injected")
        runs += sum(run["count"] for run in evidence["bad"])
        if self.data["experiments"] < runs:
            yield f"{self.data['experiments']} experiments cannot have given {runs} results"

    def missed(self) -> Iterator[str]:
        """Find sets within the bounds that nothing decides and that are not listed as open.

        From a set that some good run shows to be survived, go on by one fault which that run relied
        on; a set with none of them is survived as well. A fault that was gone on by is left out
        beside it, so that no set is met twice.
        """
        listed = [frozenset(each) for each in self.data["open"]]
        excluding = {
            fault: [each for each in self.exclusions if each & self.reach(fault) and len(each) > 1]
            for fault in self.variables
        }
        todo: list[tuple[frozenset[str], frozenset[str]]] = [(frozenset(), frozenset())]
        while todo:
            faults, left_out = todo.pop()
            if self.fails(faults) or any(each <= faults for each in listed):
                continue
            touched = self.expand(faults) | self.down
            unhit = self.unhit(touched)
            if not unhit and not self.seen(touched - self.down):
                yield f"{sorted(faults)} is neither tried, nor inferred, nor listed as open"
                continue
            if self.max_size is not None and len(faults) >= self.max_size:
                continue
            offers = [
                [each for each in self.variables if self.expand({each}) & one] for one in unhit
            ]
            for fault in min(offers, key=len, default=self.variables):
                more = faults | {fault}
                if fault not in left_out | faults and not any(
                    self.excluded(more, each) for each in excluding[fault]
                ):
                    todo.append((more, left_out))
                    left_out |= {fault}
