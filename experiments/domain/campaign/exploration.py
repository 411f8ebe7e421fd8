"""Exploring one request class: what to try next, and what has become of its findings.

In this order: *verify* what was found before, *confirm* what was just found, *explore* what nobody
knows yet, first of all what requests blame that failed by themselves, *repeat* what a certificate
would rest on and was tried only once, and *recheck* a few sets that were only inferred to be safe.

A finding is ``suspected`` at first. When an experiment of its own hurts as well, it is ``open``.
When it is survived instead, what was seen before counts no more: it has to hurt twice from there
on. When it is survived twice running, it is ``refuted``: the verdict that suspected it was wrong. A
finding that was open and is survived twice running is ``fixed``. In both cases whatever was put
down to these faults is forgotten, and what is known is built anew from the results that are left. A
finding of which a part hurts by itself is ``superseded`` by that part.

All of it is a function of the class's traffic as it is now and of the results in their order, so
that after a restart the same is known and the same comes next (:meth:`Exploration.replay`).

What is known of the class, and the way to and from the solver, is
:class:`~ldfi.experiments.domain.campaign.knowledge.Knowledge`; whoever wants that asks
``exploration.knowledge``.

Every result can be wrong (:mod:`ldfi.experiments.domain.campaign.agreement`). A failure that
contradicts what was survived is *repeated* before anything is built on it, and so is what was
survived; whatever turns out wrong is forgotten. (A request of which spans were lost seems to have
failed of fewer faults than it did, or to have relied on less.) Where both come again they are
believed, and the explorer goes over to its cautious strategy, as more faults do help here. What was
learned by rules that are no longer ours is repeated before anything else is explored. Later runs
repeat a few more: those most that close most.

Where callers went on asking when their failure contexts had run out, nothing is known either: the
class's contexts hold for twice as long as that took from then on, and the same is tried again.

Where others are hurt and the treated are not (*interference*), that says nothing: the same is tried
once more, and left open when it comes to the same. Where that happens again and again whatever is
tried, it is the place that is restless, and nothing new is tried there for the rest of the run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, cast

from ldfi.experiments.domain.campaign.agreement import TWICE, witnesses
from ldfi.experiments.domain.campaign.experience import Experience, suspicions
from ldfi.experiments.domain.campaign.knowledge import Knowledge, kills, shut_off
from ldfi.experiments.domain.campaign.result import INTERFERENCES, ExperimentResult, Hypothesis
from ldfi.experiments.domain.campaign.snapshot import Snapshot, carried
from ldfi.experiments.domain.judging.experiment import Purpose
from ldfi.experiments.domain.judging.slots import Opening
from ldfi.experiments.domain.settings import MAX_PATIENCE, MAX_SETTLE, Settings

FindingNews = Literal["suspected", "open", "refuted", "fixed", "superseded", "killed"]

UnderWay = Collection[Hypothesis]
"""What is being tried, and is known to be neither survived nor harmful."""

Refutes = Callable[[ExperimentResult], bool]
"""Says of an earlier harmful result whether a later one proves it wrong."""

MAX_TRIES = 3
"""Inconclusive attempts in a run after which a set is not tried again for the same purpose."""

RESTLESS = 10
"""Experiments of a class in a row in which others were hurt and the treated were not, after which
nothing new is tried there in this run."""

REPEATS = 6
"""So often a set is repeated in one run at most, or suspected anew, whatever comes of it."""

SHARE = 4
"""In later runs one experiment is repeated for so many others that had to be made."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The next experiment on a class."""

    hypothesis: Hypothesis
    purpose: Purpose
    opening: Opening | None = field(default=None, compare=False)
    """Of one that confirms: what the first slot left."""


@dataclass(frozen=True, slots=True)
class FindingChange:
    """What an experiment did to a finding: it is new, or its state is."""

    faults: Hypothesis
    state: FindingNews
    traces: tuple[str, ...] = ()


@dataclass(slots=True)
class Exploration:
    """What is tried on one class, in which order, and the states of its findings.

    ``version``: that of the request class whose lineage this is about. ``only``: hypotheses to be
    tried once each instead of exploring. ``called_off``: of which an experiment was aborted.
    """

    knowledge: Knowledge
    version: int = 1
    only: tuple[Hypothesis, ...] = ()
    finished: bool = False
    to_verify: list[Hypothesis] = field(default_factory=list)
    called_off: set[Hypothesis] = field(default_factory=set)
    killed: list[Hypothesis] = field(default_factory=list)
    """What seems to have killed a process in this run."""
    _judged: dict[Hypothesis, FindingNews] = field(default_factory=dict)
    _told: dict[Hypothesis, FindingNews] = field(default_factory=dict)
    _tries: Counter[tuple[str, Hypothesis]] = field(default_factory=Counter)
    _survived: Counter[Hypothesis] = field(default_factory=Counter)
    """How often running findings were survived, tried by themselves."""
    _interferences: int = 0
    """How many experiments in a row were interfered with."""
    _purposes: Counter[str] = field(default_factory=Counter)
    """What the experiments of this run were for."""
    _later: bool = False
    """Whether this is not the first run."""
    _leads: list[Hypothesis] = field(default_factory=list)
    """What the first failures of unions point to, and is tried alone."""
    _hurt_at: dict[Hypothesis, float] = field(default_factory=dict)
    """When an experiment hurt (Unix seconds)."""
    _asked: list[Hypothesis] = field(default_factory=list)
    _patience: float = 0.0
    """Seconds that failure contexts of this class were found to have to hold."""

    def __post_init__(self) -> None:
        self._asked = list(self.only)

    def begin_run(self, known: Iterable[Hypothesis]) -> None:
        """Begin a new run of the campaign: findings, and sets tried in vain, are tried again."""
        if self.knowledge.results:
            self.knowledge = self.knowledge.again(carried(self.knowledge.results))
        self.finished = False
        self._later = bool(self.knowledge.results)
        self._purposes.clear()
        self._tries.clear()
        self._interferences = 0
        self.called_off.clear()
        self.killed.clear()
        self.to_verify = list(known) if self.knowledge.settings.verify else []
        if self.only:
            self.to_verify = [each for each in self.to_verify if each in self.only]
        self._asked = [each for each in self.only if each not in self.to_verify]

    def snapshot(self) -> Snapshot:
        """Return the state from which a later run can go on."""
        return Snapshot(
            results=tuple(carried(self.knowledge.results)),
            hurt=frozenset(self.knowledge.hurt),
            judged=tuple(self._judged.items()),
            survived=tuple(self._survived.items()),
            leads=tuple(self._leads),
            patience=self._patience,
        )

    def resume(self, snapshot: Snapshot) -> None:
        """Go on from the snapshot of earlier runs; later results are to be replayed."""
        self.knowledge = self.knowledge.again(snapshot.results, snapshot.hurt)
        self._judged = {faults: cast(FindingNews, state) for faults, state in snapshot.judged}
        self._survived = Counter(dict(snapshot.survived))
        self._leads = list(snapshot.leads)
        self._patience = snapshot.patience

    def shut_off(self, points: Iterable[str]) -> None:
        """Try nothing at just these points, for a fault there kills a process."""
        known = self.knowledge
        shut_off(known, points)
        self.to_verify = [each for each in self.to_verify if not kills(known, each)]
        self._asked = [each for each in self._asked if not kills(known, each)]
        self._leads = [each for each in self._leads if not kills(known, each)]

    def plan(self, now: float = math.inf, under_way: UnderWay = frozenset()) -> Plan | None:
        """Return the next experiment. None: nothing is left, or what is left waits until later than
        ``now`` (Unix seconds). ``under_way``: hypotheses that are being tried, and not returned."""
        if self.only:
            plan = self._verification() or self._asked_for() or self._confirmation(now, under_way)
        else:
            plan = (
                self._verification()
                or self._confirmation(now, under_way)
                or (None if self.restless else self._news(now, under_way))
                or self._confirmation(now, under_way, ripe=False)
            )
        if plan is not None and plan.hypothesis in under_way:
            plan = None
        self.finished = plan is None and not under_way and not self._unconfirmed(ripe=False)
        return plan

    @property
    def restless(self) -> bool:
        """Return whether others are hurt here whatever is tried."""
        return self._interferences >= RESTLESS

    def lead(self, suspects: Hypothesis) -> Hypothesis | None:
        """Say as which hypothesis the suspects of a union can be tried alone; None where that is no
        news, or they are too many."""
        known, lead = self.knowledge, self.knowledge.by_system(suspects)
        if not lead or len(lead) > known.settings.max_size or not known.tries(lead):
            return None
        fresh = self._tries["lead", lead] < MAX_TRIES and lead not in self._leads
        return lead if fresh else None

    def call_off(self, hypothesis: Hypothesis, *, interference: bool) -> None:
        """Note that an experiment was aborted. ``interference``: others were hurt by then."""
        self.called_off.add(hypothesis)
        self._interferences += interference

    def expect(self, experience: Experience) -> None:
        """Set the solver's likelihoods from experience with the class's faults."""
        known, settings = self.knowledge, self.knowledge.settings
        if settings.strategy == "likeliest":
            faults = (fault for p in known.points for fault in known.solver_input.kinds.at(p))
            likelihoods = {fault: experience.likelihood(fault) for fault in faults}
            known.solver_input.explorer.likelihoods.update(likelihoods)

    def learn(self, result: ExperimentResult, now: float = 0.0) -> list[FindingChange]:
        """Learn a result; return the changes of findings. ``now``: Unix seconds."""
        if result.succeeded is False:
            self._hurt_at[result.injected] = now
        before = self._told
        self._take(result)
        if result.killed:  # nothing was learned, but that nobody is to try it again
            return [FindingChange(result.killed, "killed", result.traces)]
        self._told = self.states
        traces = dict(self.knowledge.findings())
        confirmed = {result.injected} if result.succeeded is False else set[Hypothesis]()
        return [
            FindingChange(faults, state, traces.get(faults, result.traces))
            for faults, state in self._told.items()
            if before.get(faults) != state or (faults in confirmed and state == "open")
        ]

    def replay(self, results: Iterable[ExperimentResult], *, told: bool = True) -> None:
        """Learn recorded results again. ``told``: True reports their changes of findings as
        news."""
        for result in results:
            self._take(result)
        if told:  # which takes as long as all of it together
            self._told = self.states

    @property
    def states(self) -> dict[Hypothesis, FindingNews]:
        """Return every finding with its state, as far as this campaign knows."""
        return _states(self.knowledge, self._judged)

    def _news(self, now: float, under_way: UnderWay) -> Plan | None:
        """Return a plan for an open hypothesis, or one that is not known well enough."""
        return (
            self._following()
            or self._doubt()
            or self._repetition(outdated=True)
            or self._suspicion()
            or self._exploration()
            # a confirmation may supersede what is repeated
            or self._confirmation(now, under_way, ripe=False)
            or self._repetition()
            or self._recheck()
            or self._once_more()
        )

    @property
    def settings(self) -> Settings:
        """Return the settings of its next experiment: contexts hold for as long as was learned, and
        late devices are waited for by so much longer."""
        settings = self.knowledge.settings
        patience = settings.patience or self._patience
        if not patience:
            return settings
        settle = min(settings.settle + patience, MAX_SETTLE)
        return replace(settings, patience=patience, settle=settle)

    def _longer(self, result: ExperimentResult) -> bool:
        """Have contexts hold for longer where requests outlasted them; say whether they will."""
        before = self._patience
        if result.outlasted and self.knowledge.settings.patience is None:
            longer = max(2 * result.outlasted, 2 * before)
            self._patience = min(longer, MAX_PATIENCE)
        return self._patience > before

    def _take(self, result: ExperimentResult) -> None:
        self._purposes[result.purpose] += 1
        if self._longer(result):
            return  # the same comes again, and has not been tried in vain
        if result.interference:
            self._interferences += 1
        elif result.succeeded is not None:
            self._interferences = 0
        if result.injected in self._asked:
            self._asked.remove(result.injected)
        if result.injected in self._leads:
            self._leads.remove(result.injected)
        if result.killed:
            self.killed.append(result.killed)
            self._learn(result)
            return
        again = result.purpose == "explore" and self._survived_since(result.injected)
        if again or result.purpose in {"confirm", "verify"}:
            self._judge(result)
        elif result.purpose == "repeat":
            self._repeated(result)
        elif result.lead:
            self._tries["lead", result.lead] += 1
            self._leads.append(result.lead)
        else:
            self._learn(result)

    def _judge(self, result: ExperimentResult) -> None:
        """Judge a known finding that was tried again by itself."""
        faults = result.injected
        if faults in self.to_verify:
            self.to_verify.remove(faults)
        verified = result.purpose == "verify"
        if result.succeeded is None:
            self._count("verify" if verified else "confirm", result)
            if verified and self._tries["verify", faults] < MAX_TRIES:
                self.to_verify.append(faults)
        elif not result.succeeded:
            first = not verified and self._survived_since(faults)
            self._survived.pop(faults, None)
            self._learn(result)
            if first:
                self._tries["suspected anew", faults] += 1
            else:
                self._judged[faults] = "open"
        else:
            self._survived[faults] += 1
            self.knowledge.hurt.add(faults)
            if self._survived[faults] >= TWICE:
                self._judged[faults] = "fixed" if verified else "refuted"
                known = self.knowledge
                self._learn(result, lambda harm: known.failed_in(faults, harm))
            else:
                self._learn(result)
                if verified:
                    self.to_verify.insert(0, faults)

    def _survived_since(self, faults: Hypothesis) -> bool:
        """Return whether a confirmation was survived and nothing has hurt since; earlier harm no
        longer counts then."""
        return 0 < self._survived[faults] < TWICE and self.states.get(faults) == "suspected"

    def _count(self, what: str, result: ExperimentResult) -> None:
        """Count a try without a verdict. Fewer are enough where only bystanders were hurt."""
        self._tries[what, result.injected] += 1
        if result.spared:
            self._tries[f"{what}, spared", result.injected] += 1
            if self._tries[f"{what}, spared", result.injected] >= INTERFERENCES:
                self._tries[what, result.injected] = MAX_TRIES

    def _repeated(self, result: ExperimentResult) -> None:
        """Take in the answer of another try; harm that it outdoes is forgotten."""
        self._tries["repeat", result.injected] += 1
        if result.succeeded is None:
            self._count("in vain", result)
        elif result.succeeded:
            self._learn(result, lambda harm: harm.injected == result.injected)
        else:
            self._learn(result)

    def _learn(self, result: ExperimentResult, refuted: Refutes | None = None) -> None:
        """Learn a result in place of those that it proves wrong. ``refuted``: which harm it does.

        A survival gives way where the same set hurts, and not for the first time; one that was
        learned by earlier rules to one that was not."""
        known = self.knowledge
        hurts = result.succeeded is False and witnesses(result, [*known.results, result]) >= TWICE

        def wrong(other: ExperimentResult) -> bool:
            if other.succeeded is False:
                return refuted is not None and refuted(other)
            same = bool(other.succeeded) and other.injected == result.injected
            return same and (hurts or (bool(result.succeeded) and other.rules < result.rules))

        newer = result.succeeded and any(each.rules < result.rules for each in known.results)
        known.learn(result, wrong if hurts or newer or refuted is not None else None)

    def _asked_for(self) -> Plan | None:
        self._asked = [each for each in self._asked if self.knowledge.knows(each)]
        return Plan(self._asked[0], "explore") if self._asked else None

    def _verification(self) -> Plan | None:
        self.knowledge.study_traffic()
        self.to_verify = [each for each in self.to_verify if self.knowledge.knows(each)]
        return Plan(self.to_verify[0], "verify") if self.to_verify else None

    def _confirmation(self, now: float, under_way: UnderWay, *, ripe: bool = True) -> Plan | None:
        apart = self.knowledge.settings.apart
        suspected = [
            faults
            for faults in self._unconfirmed(ripe=ripe)
            if faults not in under_way and now >= self._hurt_at.get(faults, 0.0) + apart
        ]
        if not suspected:
            return None
        first = min(suspected, key=sorted)
        if self._survived_since(first):
            return Plan(first, "explore")
        return Plan(first, "confirm", _opening(self.knowledge.results, first))

    def _following(self) -> Plan | None:
        self._leads = [each for each in self._leads if self.knowledge.tries(each)]
        return Plan(self._leads[0], "explore") if self._leads else None

    def _suspicion(self) -> Plan | None:
        """Return a plan for faults that traffic blames, each alone. Those called off are left to
        unions."""
        fresh = (each for each in suspicions(self.knowledge) if each not in self.called_off)
        return next((Plan(each, "explore") for each in fresh), None)

    def _unconfirmed(self, *, ripe: bool) -> list[Hypothesis]:
        """Return suspected findings that are not confirmed. ``ripe``: without those that a
        broader finding, still to be tried, may replace."""
        return [
            faults
            for faults, state in self.states.items()
            if state == "suspected"
            and not kills(self.knowledge, faults)
            and self._tries["confirm", faults] < MAX_TRIES
            and self._tries["suspected anew", faults] < REPEATS
            and not (ripe and self.knowledge.superseded_soon(faults))
        ]

    def _doubt(self) -> Plan | None:
        """Return a plan to settle a contradiction that was not tried again often enough."""
        states = self.states
        for _, again in self.knowledge.evidence_quality.contradictions():
            for faults in filter(self._may_repeat, again):
                if states.get(faults) not in {"suspected", "open"}:
                    return Plan(faults, "repeat")
        return None

    def _repetition(self, *, outdated: bool = False) -> Plan | None:
        """Return a plan to repeat a set that a certificate would rest on and that was tried too
        seldom.

        ``outdated``: only what was learned by earlier rules.
        """
        evidence_quality = self.knowledge.evidence_quality
        worth = evidence_quality.outdated_sets() if outdated else evidence_quality.worth_repeating()
        found = next(filter(self._may_repeat, worth), None)
        if found is None and not outdated:
            return next(filter(None, map(self._unproved, evidence_quality.unproved())), None)
        return None if found is None else Plan(found, "repeat")

    def _unproved(self, faults: Hypothesis) -> Plan | None:
        """Return what to try for a finding that rests on too few runs.

        Of an open one, some of what showed it was forgotten. One that stays suspected cannot be
        tried by itself: perhaps more had failed where it seemed to hurt, and the spans were lost.
        """
        state = self.states.get(faults)
        if kills(self.knowledge, faults):
            return None
        if state == "open" and self._tries["confirm", faults] < MAX_TRIES:
            return Plan(faults, "confirm")
        if state == "suspected":
            behind = filter(self._may_repeat, self.knowledge.evidence_quality.behind(faults))
            return next((Plan(each, "repeat") for each in behind), None)
        return None

    def _once_more(self) -> Plan | None:
        """In later runs, repeat a few of those that close most."""
        repeated = self._purposes["repeat"]
        others = self._purposes.total() - repeated
        if (
            not self._later
            or not self.knowledge.evidence_quality.doubted
            or SHARE * (repeated + 1) > others
        ):
            return None
        heaviest = filter(self._may_repeat, self.knowledge.evidence_quality.weightiest())
        return next((Plan(each, "repeat") for each in heaviest), None)

    def _may_repeat(self, faults: Hypothesis) -> bool:
        return (
            self._tries["in vain", faults] < MAX_TRIES
            and self._tries["repeat", faults] < REPEATS
            and self.knowledge.knows(faults)
        )

    def _exploration(self) -> Plan | None:
        proposed = self.knowledge.propose()
        return None if proposed is None else Plan(proposed, "explore")

    def _recheck(self) -> Plan | None:
        if self._purposes["recheck"] >= self.knowledge.settings.rechecks:
            return None
        drawn = self.knowledge.recheck()
        if drawn is None or kills(self.knowledge, drawn):
            return None
        return Plan(drawn, "recheck")


def _states(
    known: Knowledge, judged: Mapping[Hypothesis, FindingNews]
) -> dict[Hypothesis, FindingNews]:
    """Give every finding its state: the one its own experiment gave it (``judged``), unless it was
    found again since, or a subset of its faults was found to hurt."""
    found = {faults for faults, _ in known.findings()}
    states = dict(judged)
    for faults, state in judged.items():
        if state == "open" and known.superseded(faults):
            states[faults] = "superseded"
    for faults in sorted(found, key=sorted):
        if states.get(faults) not in {"open", "superseded"}:
            states[faults] = "suspected" if known.settings.confirm else "open"
    return states


def _opening(results: Sequence[ExperimentResult], faults: Hypothesis) -> Opening | None:
    """Return the evidence that the last experiment of these faults hands to a second one; none
    if it was survived."""
    for result in reversed(results):
        if result.injected != faults:
            continue
        if result.succeeded or result.purpose in {"explore", "recheck", "repeat"}:
            return result.opening
    return None
