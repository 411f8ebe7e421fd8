"""What a certificate of one class rests on: its firm results, and where they leave something open.

What is to be tried next follows from all results; that nothing is left does not. A certificate is
complete where the firm results alone (:mod:`ldfi.experiments.domain.campaign.agreement`) leave
nothing open, and no contradiction is unsettled. One is settled when both of its sides were tried
often enough to be believed: then more faults do help here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ldfi.experiments.domain.campaign.agreement import (
    TWICE,
    agreed,
    borne_out,
    firm,
    survivals,
    witnesses,
)
from ldfi.experiments.domain.campaign.result import RULES, ExperimentResult, Hypothesis
from ldfi.experiments.domain.campaign.solver_input import SolverInput
from ldfi.solver import Doubt, Judgement, Statement

LOOKED_AT = 300
"""Hypotheses that are only closed by results tried once, looked at to choose the next of these."""


@dataclass
class EvidenceQuality:
    """``results``: all there are; ``solver_input`` was fed with them. ``empty`` makes an unfed one.

    ``hurt``: what has ever hurt. ``doubted``: whether what was survived once has to be tried again.
    """

    results: Sequence[ExperimentResult]
    hurt: Collection[Hypothesis]
    solver_input: SolverInput
    empty: Callable[[], SolverInput]
    doubted: bool
    survived: Mapping[Hypothesis, Sequence[ExperimentResult]]
    _known: list[ExperimentResult] = field(init=False)
    _firm: SolverInput | None = field(default=None, init=False)
    _absent: dict[Hypothesis, frozenset[str]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._known = borne_out(self.results)

    @property
    def firm(self) -> SolverInput:
        """Return the solver input of the firm results alone."""
        if self._firm is None:
            chosen = list(self._chosen.values())
            everything = chosen == self._known
            self._firm = self.solver_input if everything else self.empty()
            if not everything:
                self._firm.take_all(chosen)
        return self._firm

    @cached_property
    def _chosen(self) -> dict[int, ExperimentResult]:
        return firm(self.results, self.wanted, doubted=self._strict)

    def wanted(self, injected: Hypothesis) -> int:
        """Return how often a set has to be survived before anything rests on it."""
        return self._worth(injected) if self.doubted else 1

    def open(self, limit: int = LOOKED_AT) -> list[Hypothesis]:
        """List minimal hypotheses that the firm results leave open, at most ``limit``."""
        return [frozenset(map(str, each)) for each in self.firm.explorer.open_hypotheses(limit)]

    def shaky(self) -> list[Hypothesis]:
        """Return sets survived too seldom that close hypotheses nothing else closes.

        First what was learned by earlier rules, then what closes most.
        """
        if self.firm is self.solver_input:
            return []
        closing = self._closing()
        closes: Counter[Hypothesis] = Counter()
        for hypothesis in self.open():
            for failed in self.solver_input.explorer.survivals(hypothesis):
                closes.update(closing[frozenset(map(str, failed))])
        return sorted(
            closes, key=lambda each: (not self.outdated(each), -closes[each], sorted(each))
        )

    def outdated_sets(self) -> Iterator[Hypothesis]:
        """Return sets that rest on results by earlier rules only and close hypotheses nothing
        else closes."""
        if any(map(self.outdated, self.survived)):
            yield from filter(self.outdated, self.shaky())

    def worth_repeating(self) -> Iterator[Hypothesis]:
        """Return sets to try again before a certificate may rest on them: first those that close
        most; then those tried too seldom that close nothing."""
        yield from self.shaky()
        yield from self._open_though("safe")

    def unproved(self) -> Iterator[Hypothesis]:
        """Name findings that the firm results do not show."""
        return self._open_though("failing")

    def outdated(self, injected: Hypothesis) -> bool:
        """Return whether all that shows a set to be survived was learned by earlier rules."""
        return all(each.rules < RULES for each in self.survived.get(injected, ()))

    def weightiest(self) -> list[Hypothesis]:
        """Return survived sets, first those that close most for the times they were tried.

        So tries are given out in proportion to what they close.
        """
        points = len(self.solver_input.around.points)
        weights = {}
        for injected, same in self.survived.items():
            relied_on = frozenset().union(*(each.relied_on for each in same))
            free = points - len({fault.partition("@")[2] for fault in relied_on})
            weights[injected] = free * (free + 1) / 2 / sum(each.times for each in same)
        return sorted(weights, key=lambda each: (-weights[each], sorted(each)))

    def behind(self, faults: Hypothesis) -> list[Hypothesis]:
        """Return the injected sets of the experiments in which these faults seemed to hurt."""
        fired = self.solver_input.with_tokens(faults)
        return [
            each.injected
            for each in self._known
            if each.succeeded is False and each.injected != faults and each.fired <= fired
        ]

    def contradictions(self) -> Iterator[tuple[ExperimentResult, list[Hypothesis]]]:
        """Return unsettled contradictions: a harmful result, and the sets to try again to settle
        it."""
        doubtful = set(self.solver_input.explorer.doubtful)
        for result in self._known:
            if (
                result.succeeded is False
                and self.solver_input.with_tokens(result.fired) in doubtful
            ):
                again = [] if self._believed(result) else [result.injected]
                again += self._against(result)
                if again:
                    yield result, again

    def statement(self) -> Statement:
        """Return a snapshot of the certificate with what is firm; it can be written while more
        is learned."""
        experiments = [n for n, each in enumerate(self.results) if each.purpose != "rejected"]
        at = {result: place for place, result in enumerate(experiments)}
        unsettled = sorted({each.injected for each, _ in self.contradictions()}, key=sorted)
        doubt = Doubt(
            runs=self.firm.explorer.runs.copy(),
            places=[at[each] for each in self._chosen if each in at],
            survived=TWICE if self.doubted else 1,
            failed=TWICE if self._strict else 1,
            unsettled=unsettled,
        )
        return self.solver_input.explorer.statement(doubt)

    def _open_though(self, judged: Judgement) -> Iterator[Hypothesis]:
        """Return hypotheses that are open by the firm results and closed by all results."""
        if self.firm is not self.solver_input:
            for each in self.open():
                if self.solver_input.explorer.judge(each) == judged:
                    yield each

    def _closing(self) -> Mapping[Hypothesis, list[Hypothesis]]:
        """Return results that are not firm, grouped by the sets they show to be survived."""
        found = defaultdict(list)
        for injected, same in self.survived.items():
            if not self._enough(injected, self.wanted(injected)):
                for fired in self._shown(same):
                    found[fired].append(injected)
        return found

    def _shown(self, same: Sequence[ExperimentResult]) -> set[frozenset[str]]:
        return {self.solver_input.with_tokens(agreed(each, same).fired) for each in same}

    @property
    def _strict(self) -> bool:
        """Return whether harm that was met once is not believed either."""
        return self.doubted and self.solver_input.settings.confirm

    def _worth(self, injected: Hypothesis) -> int:
        return TWICE + (injected in self.hurt or bool(self._missing(injected)))

    def _missing(self, injected: Hypothesis) -> frozenset[str]:
        """Points that were not called, although requests in which less fired called them, and
        nothing that fired is around them: perhaps their spans were lost."""
        if injected not in self._absent:
            same = self.survived[injected]
            fired = frozenset().union(*(each.fired for each in same))
            called = frozenset().union(*(each.called for each in same))
            expected = set(self.solver_input.around.called)
            for others in self.survived.values():
                expected.update(*(each.called for each in others if each.fired < fired))
            points = frozenset(fault.partition("@")[2] for fault in fired)
            behind = self.solver_input.around.topology.behind(points)
            self._absent[injected] = frozenset(expected - called - behind)
        return self._absent[injected]

    def _enough(self, injected: Hypothesis, wanted: int) -> bool:
        return sum(each.rules == RULES for each in self.survived[injected]) >= wanted

    def _believed(self, harm: ExperimentResult) -> bool:
        return not self.solver_input.settings.confirm or witnesses(harm, self._known) >= TWICE

    def _against(self, harm: ExperimentResult) -> list[Hypothesis]:
        """Return the sets whose survival contradicts a harm and was not seen often enough."""
        shown = self.solver_input.explorer.survivals(self.solver_input.with_tokens(harm.fired))
        names = {frozenset(map(str, each)) for each in shown}
        return [
            injected
            for injected, same in self.survived.items()
            if not names.isdisjoint(self._shown(same))
            and not self._enough(injected, self._worth(injected))
        ]


def evidence_quality(
    results: Sequence[ExperimentResult],
    hurt: Collection[Hypothesis],
    solver_input: SolverInput,
    empty: Callable[[], SolverInput],
    *,
    doubted: bool,
) -> EvidenceQuality:
    """Return how well-founded these results are."""
    return EvidenceQuality(results, hurt, solver_input, empty, doubted, survivals(results))
