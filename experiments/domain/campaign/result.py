"""What a run teaches (design, section 4), in the solver's words.

A tolerated experiment makes one clause: the union of what its successful requests relied on, less
the faults that fired and were survived. Where an answer was accepted although something was missing
from it (*degraded*), what was not called because of that has not been shown to be dispensable: it
proves that what fired does not hurt, and no more. A harmful one is put down to the faults that
*fired* in its failed requests, not to those that were armed. An inconclusive one teaches nothing
about the hypothesis. Where bystanders were hurt in it, that is *interference*: it is kept, and
makes no finding, however often it comes again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from ldfi.experiments.domain.judging.bystanders import Spread
from ldfi.experiments.domain.judging.experiment import Experiment, Purpose, killed_by
from ldfi.experiments.domain.judging.two_slots import Opening
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.fit.protocol.native_kinds import gone
from ldfi.lineage.blame import NOTHING_KNOWN, FailureRecord, blame
from ldfi.lineage.lineage import Lineage

Hypothesis = frozenset[str]
"""Variables of the solver: what is tried together."""

ResultPurpose = Purpose | Literal["rejected"]
"""What the experiment was for; ``rejected``: an operator did not let it be tried."""

RULES = 2
"""The rules by which results are drawn. Under the first, nobody knew of degraded answers, of what
makes others fail below a call, or of what a union's first failure points to."""

INTERFERENCES = 2
"""So often others are hurt where no treated device is; then a set is left open. Where some were, it
is tried as often as whatever else is inconclusive."""

MAX_TRACES = 5
"""Exemplar traces that a result names as its evidence."""


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """``succeeded`` is None for an inconclusive experiment. ``suspects`` (blame) and ``called``
    are points; the rest are faults.

    ``spread``: how others than the treated were hurt; empty where they were not. Of an inconclusive
    one that is *interference*.
    ``survived``: how calls failed with nothing failed above them (``kind@point``), by injection or
    because something below them did. ``implications``: pairs (delay, error) of a point where a
    delay made the call itself fail. ``degraded``: some answer was accepted although something was
    missing from it. ``lead``: of a union that was stopped at its first failure, the faults that are
    to be tried alone. ``killed``: of an inconclusive one, what of it seems to have killed a
    process.
    """

    injected: frozenset[str]
    succeeded: bool | None
    fired: frozenset[str] = frozenset()
    relied_on: frozenset[str] = frozenset()
    called: frozenset[str] = frozenset()
    survived: frozenset[str] = frozenset()
    suspects: frozenset[str] = frozenset()
    implications: frozenset[tuple[str, str]] = frozenset()
    traces: tuple[str, ...] = ()
    purpose: ResultPurpose = "explore"
    spread: Spread = ""
    opening: Opening | None = None
    """Of a harmful one: what it leaves to a second slot."""
    degraded: bool = False
    lead: frozenset[str] = frozenset()
    killed: frozenset[str] = frozenset()
    outlasted: float = 0.0
    """Of an inconclusive one: the longest request that went on when its failure context may have
    run out, in seconds; 0 where that is not why."""
    rules: int = RULES
    """Those by which it was drawn."""
    times: int = 1
    """So many runs it stands for, which taught the same
    (:mod:`ldfi.experiments.domain.campaign.snapshot`)."""
    proof: Mapping[str, Any] | None = field(default=None, compare=False)
    """What its verdict came from, as the record of the run has it; None of runs from before."""

    @property
    def interference(self) -> bool:
        """Return whether others were hurt, and it is not shown that treated devices were."""
        return self.succeeded is None and self.spread != ""

    @property
    def spared(self) -> bool:
        """Return whether others were hurt, and no treated device failed."""
        arms = (self.proof or {}).get("arms") or {"treatment": (0, 0)}
        return self.interference and not arms["treatment"][1]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON, for the store."""
        return {
            "injected": sorted(self.injected),
            "succeeded": self.succeeded,
            "fired": sorted(self.fired),
            "relied_on": sorted(self.relied_on),
            "called": sorted(self.called),
            "survived": sorted(self.survived),
            "suspects": sorted(self.suspects),
            "implications": sorted(map(list, self.implications)),
            "traces": list(self.traces),
            "purpose": self.purpose,
            **({"spread": self.spread} if self.spread else {}),
            "opening": None if self.opening is None else asdict(self.opening),
            "degraded": self.degraded,
            "lead": sorted(self.lead),
            **({"killed": sorted(self.killed)} if self.killed else {}),
            **({"outlasted": self.outlasted} if self.outlasted else {}),
            "rules": self.rules,
            **({"times": self.times} if self.times > 1 else {}),
            **({"proof": dict(self.proof)} if self.proof is not None else {}),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ExperimentResult:
        """Read what :meth:`to_json` wrote.

        What an ``error`` over HTTP was when the record was made, it still is on record. A system
        that was down then is one of which each point had that; today its calls are refused.
        Harm of bystanders alone was a suspicion once, and harm the second time: today it is
        interference.
        """
        injected = frozenset(data["injected"])
        former = frozenset(each for each in data["fired"] if _former(each))
        if former:
            injected = frozenset(f for f in injected if not f.startswith("down@")) | (
                former if any(f.startswith("down@") for f in injected) else frozenset()
            )
        result = cls(
            injected=injected,
            succeeded=data["succeeded"],
            fired=frozenset(data["fired"]),
            relied_on=frozenset(data["relied_on"]),
            called=frozenset(data["called"]),
            survived=frozenset(data.get("survived", data["fired"])),
            suspects=frozenset(data["suspects"]),
            implications=frozenset((delay, error) for delay, error in data["implications"]),
            traces=tuple(data["traces"]),
            purpose=data["purpose"],
            spread=data.get("spread", ""),
            opening=Opening(**data["opening"]) if data.get("opening") else None,
            degraded=data.get("degraded", False),
            lead=frozenset(data.get("lead", ())),
            killed=frozenset(data.get("killed", ())),
            outlasted=data.get("outlasted", 0.0),
            rules=data.get("rules", 1),
            times=data.get("times", 1),
            proof=data.get("proof"),
        )
        return _as_judged_today(result)


def result_of(
    experiment: Experiment, usual_support: frozenset[str], record: FailureRecord = NOTHING_KNOWN
) -> ExperimentResult:
    """Draw the result of a decided experiment.

    ``usual_support`` are the points that the class's unperturbed requests rely on: a point
    outside it is a fallback, and blame looks for what brought it in. ``record``: what else they
    have shown.
    """
    injected = experiment.hypothesis
    implications = _implications([*experiment.good, *experiment.bad])
    if experiment.verdict == "tolerated":
        good = [observation.lineage for observation in experiment.good]
        return ExperimentResult(
            injected,
            succeeded=True,
            fired=frozenset().union(*(lineage.fired for lineage in good)),
            relied_on=frozenset().union(*(lineage.relied_on for lineage in good)),
            called=frozenset().union(*(lineage.called for lineage in good)),
            survived=frozenset().union(*(lineage.survived for lineage in good)),
            implications=implications,
            traces=tuple(lineage.trace_id for lineage in good[:MAX_TRACES]),
            purpose=experiment.purpose,
            degraded=any(each.outcome.degraded for each in experiment.good),
        )
    if experiment.verdict == "harmful":
        return _harm(experiment, usual_support, record, implications)
    interference = experiment.overruled == "bystanders"
    hasty = experiment.overruled == "patience"
    return ExperimentResult(
        injected,
        succeeded=None,
        lead=experiment.lead,
        implications=implications,
        purpose=experiment.purpose,
        spread=experiment.bystanders.spread() if interference else "",
        killed=killed_by(experiment),
        outlasted=max(experiment.unproved.outlasted.values(), default=0.0) if hasty else 0.0,
    )


def completed(
    result: ExperimentResult,
    experiment: Experiment,
    unmet: Callable[[frozenset[str], int, frozenset[str]], frozenset[str]],
) -> ExperimentResult:
    """Return the result with a survival also relying on points that its requests may have
    avoided by chance.

    ``unmet``: :meth:`Traffic.unmet`. A path that only some requests take need not be among the few
    of an experiment, and is not where those that took it have failed.
    """
    if not result.succeeded:
        return result
    called_when_failed = frozenset[str]().union(*(each.lineage.called for each in experiment.bad))
    unproved = unmet(result.called, len(experiment.good), called_when_failed)
    return replace(result, relied_on=result.relied_on | unproved)


def _former(fault: str) -> bool:
    """Tell an error over HTTP, as it was injected before that was a refused connection."""
    kind, _, point = fault.partition("@")
    return kind == "error" and gone(point) != "error"


def _as_judged_today(result: ExperimentResult) -> ExperimentResult:
    """Return a result without the harm that its tests did not find."""
    overruled = (result.proof or {}).get("overruled")
    if result.succeeded is not False or overruled != "bystanders":
        return result
    nothing = frozenset[str]()
    return replace(result, succeeded=None, fired=nothing, suspects=nothing, traces=(), opening=None)


def suspects_of(
    experiment: Experiment, usual_support: frozenset[str], record: FailureRecord = NOTHING_KNOWN
) -> frozenset[str]:
    """Find the faults that fired and that the requests which failed blame; none where their traces
    name none. Where a blamed delay ended in an error of the call, the error is to blame."""
    fired, alike = _alike(experiment)
    points = _blamed(alike, usual_support, record)
    gave_up = frozenset().union(*(each.timed_out for each in alike))
    errors = "error" in experiment.settings.kinds
    return frozenset(
        f"error@{point}" if errors and point in gave_up else fault
        for fault, point in ((fault, fault.partition("@")[2]) for fault in fired)
        if point in points
    )


def _alike(experiment: Experiment) -> tuple[frozenset[str], list[Lineage]]:
    """Return the set that fired most often in the failed requests, and these requests."""
    bad = experiment.bad or experiment.good  # outcomes counted elsewhere name no single request
    commonest = _most_common(Counter(observation.lineage.fired for observation in bad))
    return commonest, [o.lineage for o in bad if o.lineage.fired == commonest]


def _harm(
    experiment: Experiment,
    usual_support: frozenset[str],
    record: FailureRecord,
    implications: frozenset[tuple[str, str]],
) -> ExperimentResult:
    commonest, alike = _alike(experiment)
    return ExperimentResult(
        experiment.hypothesis,
        succeeded=False,
        fired=commonest,
        suspects=_blamed(alike, usual_support, record),
        implications=implications,
        traces=tuple(lineage.trace_id for lineage in alike[:MAX_TRACES]),
        purpose=experiment.purpose,
        spread=experiment.bystanders.spread(),
        opening=Opening(
            experiment.stays.worse,
            min(experiment.level or 1.0, experiment.settings.alpha_harmful),
        ),
    )


def _blamed(
    failed: Iterable[Lineage], usual_support: frozenset[str], record: FailureRecord
) -> frozenset[str]:
    """Choose the points that these requests blame most often, of those that blame any."""
    found = (frozenset(blame(each.tree, usual_support, record)) for each in failed)
    blamed = Counter(filter(None, found))
    return _most_common(blamed) if blamed else frozenset()


def _most_common(sets: Counter[frozenset[str]]) -> frozenset[str]:
    """Choose the commonest set; among equally common ones the smallest, then the first by name."""
    return min(sets, key=lambda found: (-sets[found], len(found), sorted(found)))


def _implications(observations: Iterable[Observation]) -> frozenset[tuple[str, str]]:
    points = frozenset().union(*(o.lineage.timed_out for o in observations))
    return frozenset((f"delay@{point}", f"error@{point}") for point in points)
