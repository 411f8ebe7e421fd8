"""Why a run of a campaign is over, and what it leaves open.

Nobody may read "nothing was found" as "nothing hurts" where experiments were inconclusive, the
solver ran out of time or the members were spent. So a run ends *complete*, or it says what is left,
how much of it, and why; the API, the pages, the command line and notifications all have it from
here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

from ldfi.experiments.domain.campaign.experiment_tally import Trial, Trials
from ldfi.experiments.domain.campaign.exploration import Exploration
from ldfi.experiments.domain.campaign.knowledge import OPEN_SHOWN, kills
from ldfi.experiments.domain.campaign.result import Hypothesis
from ldfi.experiments.domain.campaign.solver_input import NO_INJECTOR, NO_TIMEOUT
from ldfi.experiments.domain.judging.judgement import INTERFERENCE
from ldfi.experiments.domain.judging.killed_process import KILLED

EndKind = Literal["complete", "open", "out of time", "out of budget"]
"""``open``: experiments gave no answer. ``out of time``: the solver could not say what to try next.
``out of budget``: the members of the run are spent. The last two may come with the first."""

COMPLETE: Final = "nothing left to try within the bounds"
OUT_OF_TIME: Final = "the solver ran out of time"
NOT_TRIED: Final = "not tried"
NOT_CONFIRMED: Final = "not confirmed"
TRIED_ONCE: Final = "survived, but not tried again often enough"
CONTRADICTED: Final = "what was seen of it contradicts itself"
UNKNOWN: Final = "its points were not seen in this class"
NAMED = 5
"""Hypotheses, points and classes that are named; the others are counted."""

_HEADS: Final[Mapping[EndKind, str]] = {
    "open": "not everything is decided",
    "out of time": OUT_OF_TIME,
    "out of budget": "the campaign's budget is spent",
}


@dataclass(frozen=True, slots=True)
class LeftOpen:
    """What a run leaves open of one class.

    ``why``: of how many minimal hypotheses nothing is known for this reason. ``named``: some of
    them. ``silent``: points that were set aside, for nothing ever fired there. ``unreached``:
    points and faults that have no injector otherwise, and were not tried, with what to install.
    ``out_of_bounds``: points and faults at which nothing can be tried, each with its reason: those,
    and points at which none of the kinds is possible that were asked for. ``unseen``: what cannot
    be seen, where that is more than was asked for.
    """

    request_class: str
    why: Mapping[str, int]
    named: tuple[tuple[str, ...], ...] = ()
    silent: tuple[str, ...] = ()
    unreached: Mapping[str, str] = field(default_factory=dict)
    out_of_bounds: Mapping[str, str] = field(default_factory=dict)
    unseen: str = ""

    @property
    def within(self) -> bool:
        """Return whether hypotheses are left that the run was to try."""
        return bool(self.why or self.silent or self.unreached or self.unseen)

    @property
    def count(self) -> int:
        """Return how many hypotheses are open."""
        return sum(self.why.values())

    @property
    def words(self) -> str:
        """Say it to people."""
        said = _hypotheses(self.why) if self.why else ""
        silent = f"nothing ever fired at {_some(self.silent)}" if self.silent else ""
        beyond = _beyond(self.out_of_bounds)
        return "; ".join(filter(None, (said, silent, beyond, self.unseen)))


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended. ``held``: classes that wait for an operator since their lineage changed."""

    kind: EndKind = "complete"
    left: tuple[LeftOpen, ...] = ()
    held: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """Say it to people, in one line."""
        beyond = {at: text for each in self.left for at, text in each.out_of_bounds.items()}
        if self.kind == "complete":
            return "; ".join(filter(None, (COMPLETE, _beyond(beyond))))
        why: Counter[str] = Counter()
        for each in self.left:
            why.update(each.why)
        silent = sorted({point for each in self.left for point in each.silent})
        parts = (
            _hypotheses(why) if why else "",
            f"nothing ever fired at {_some(silent)}, which was not tried again" if silent else "",
            _beyond(beyond),
            f"held since their lineage changed: {_some(self.held)}" if self.held else "",
            *(f"{each.request_class}: {each.unseen}" for each in self.left if each.unseen),
        )
        return f"{_HEADS[self.kind]}: {'; '.join(filter(None, parts)) or 'nothing was tried'}"

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON, for the store and the API."""
        return {
            "kind": self.kind,
            "left": [
                {
                    "request_class": each.request_class,
                    "why": dict(each.why),
                    "named": [list(faults) for faults in each.named],
                    "silent": list(each.silent),
                    "unreached": dict(each.unreached),
                    "out_of_bounds": dict(each.out_of_bounds),
                    **({"unseen": each.unseen} if each.unseen else {}),
                    "words": each.words,
                }
                for each in self.left
            ],
            "held": list(self.held),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Ending | None:
        """Read what :meth:`to_json` wrote; None where nothing was written."""
        if data is None:
            return None
        left = (
            LeftOpen(
                each["request_class"],
                dict(each["why"]),
                tuple(map(tuple, each["named"])),
                tuple(each["silent"]),
                dict(each.get("unreached", {})),
                dict(
                    each.get("out_of_bounds", dict.fromkeys(each.get("unreached", ()), NO_INJECTOR))
                ),
                each.get("unseen", ""),
            )
            for each in data["left"]
        )
        return cls(cast(EndKind, data["kind"]), tuple(left), tuple(data["held"]))


@dataclass(slots=True)
class _Open:
    """Hypotheses of one class of which nothing is known, and why."""

    exploration: Exploration
    trials: Mapping[Hypothesis, Trial]
    why: dict[Hypothesis, str] = field(default_factory=dict)

    def asked(self) -> None:
        """Add the hypotheses that somebody asked for, and no other."""
        for each in self.exploration.only:
            trial, knowledge = self.trials.get(each), self.exploration.knowledge
            if kills(knowledge, each):
                self.why[each] = KILLED
            elif trial is None:
                untried = NOT_TRIED if knowledge.knows(each) else UNKNOWN
                self.why[each] = untried if knowledge.solver_input.reaches(each) else NO_INJECTOR
            elif not trial.decided:
                self.why[each] = trial.why_open

    def explored(self) -> None:
        """Add hypotheses that are still open, and findings that could not be verified."""
        untried = OUT_OF_TIME if self.exploration.finished else NOT_TRIED
        if self.exploration.restless:
            untried = INTERFERENCE
        for found in self.exploration.knowledge.solver_input.explorer.open_hypotheses(OPEN_SHOWN):
            each = frozenset(map(str, found))
            self.why[each] = self.trials[each].why_open if each in self.trials else untried
        self._killed()
        evidence_quality = self.exploration.knowledge.evidence_quality
        for each in evidence_quality.open(OPEN_SHOWN):
            self.why.setdefault(each, TRIED_ONCE)
        for harm, _ in evidence_quality.contradictions():
            self.why[harm.injected] = CONTRADICTED
        for each, trial in self.trials.items():
            if trial.purpose == "verify" and not trial.decided:
                self.why[each] = trial.why_open
        for each, state in self.exploration.states.items():
            if state == "suspected":
                undecided = each in self.trials and not self.trials[each].decided
                self.why[each] = self.trials[each].why_open if undecided else NOT_CONFIRMED

    def _killed(self) -> None:
        """Add faults of which it is only known that a process was killed there."""
        knowledge = self.exploration.knowledge
        for point in knowledge.shut & knowledge.points:
            self.why[frozenset({knowledge.solver_input.kinds.gone(point)})] = KILLED


def left_open(exploration: Exploration, trials: Trials) -> LeftOpen | None:
    """Return the open hypotheses of one class, with reasons; None if none are left."""
    name = exploration.knowledge.name
    found = _Open(exploration, trials.last(name))
    if exploration.only:
        found.asked()
    else:
        found.explored()
    solver_input = exploration.knowledge.solver_input
    beyond, told = solver_input.out_of_bounds(), solver_input.unreached()
    if exploration.only:
        beyond, told = (_asked(each, exploration) for each in (beyond, told))
    late = {each for each, text in beyond.items() if text == NO_TIMEOUT}
    silent = tuple(
        each for each in trials.silent(name) if late.isdisjoint({each, each.partition("@")[2]})
    )
    unreached = {each: text for each, text in told.items() if each not in silent}
    beyond = {each: text for each, text in beyond.items() if each not in silent}
    unseen = _unseen(exploration)
    if not found.why and not silent and not beyond and not unseen:
        return None
    named = sorted(map(sorted, found.why), key=lambda faults: (len(faults), faults))
    return LeftOpen(
        request_class=name,
        why=dict(sorted(Counter(found.why.values()).items())),
        named=tuple(map(tuple, named[:NAMED])),
        silent=silent,
        unreached=unreached,
        out_of_bounds=beyond,
        unseen=unseen,
    )


def _asked(told: Mapping[str, str], exploration: Exploration) -> dict[str, str]:
    """Return what is said of points and faults that somebody asked for."""
    solver_input = exploration.knowledge.solver_input
    faults = frozenset[str]().union(*exploration.only)
    faults = faults.union(
        *(solver_input.errors(each) for each in faults & solver_input.domains.keys())
    )
    asked = faults | {fault.partition("@")[2] for fault in faults}
    return {each: text for each, text in told.items() if each in asked}


def _unseen(exploration: Exploration) -> str:
    """Return the share that cannot be seen, if it is above the bound that was asked for."""
    knowledge = exploration.knowledge
    figure, bound = knowledge.traffic.unseen, knowledge.settings.unseen
    return f"{figure.line} ({bound:g} is asked for)" if figure.above(bound) else ""


def ending_of(
    explorations: Iterable[Exploration], trials: Trials, held: Iterable[str], *, spent: bool
) -> Ending:
    """Return how a run ends now. ``spent``: because its members are."""
    left = tuple(filter(None, (left_open(each, trials) for each in explorations)))
    kept = tuple(sorted(held))
    kind: EndKind = "open" if kept or any(each.within for each in left) else "complete"
    if any(OUT_OF_TIME in each.why for each in left):
        kind = "out of time"
    return Ending("out of budget" if spent else kind, left, kept)


def _hypotheses(why: Mapping[str, int]) -> str:
    total = sum(why.values())
    reasons = ", ".join(f"{reason}: {count}" for reason, count in sorted(why.items()))
    stay = "hypothesis stays" if total == 1 else "hypotheses stay"
    return f"{total} {stay} open ({reasons})"


def _beyond(out_of_bounds: Mapping[str, str]) -> str:
    """Return what was not tried, by reason."""
    by_reason: dict[str, list[str]] = {}
    for each in sorted(out_of_bounds):
        by_reason.setdefault(out_of_bounds[each], []).append(each)
    return "; ".join(
        f"{reason} at {_some(names)}, which was not tried"
        if reason in {NO_INJECTOR, NO_TIMEOUT}
        else f"not tried: {_some(names)} ({reason})"
        for reason, names in sorted(by_reason.items())
    )


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = len(listed) - NAMED
    return ", ".join(listed[:NAMED]) + (f" and {more} more" if more > 0 else "")
