"""Results, taught one by one to an explorer: what they mean is what surrounds them.

The solver sees variables, which are strings: ``error@POINT``, ``delay@POINT`` and so for every kind
of fault that is asked for, and ``down@SYSTEM`` for a fault domain, all of whose points fail
together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from ldfi.experiments.domain.campaign.class_context import ClassContext
from ldfi.experiments.domain.campaign.kinds import Kinds
from ldfi.experiments.domain.campaign.result import INTERFERENCES, ExperimentResult, Hypothesis
from ldfi.experiments.domain.campaign.unproven_points import Unproven, token
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.injectors import (
    AFTER_ANSWER,
    NO_CONTEXT,
    lacking,
    to_install,
)
from ldfi.experiments.domain.traffic.patterns import matching
from ldfi.fit.protocol.context import room
from ldfi.fit.protocol.faults import DOWN
from ldfi.fit.protocol.kinds import FaultKind
from ldfi.fit.protocol.native_kinds import GONE
from ldfi.solver import Explorer

SPELT_OUT = 4
"""A domain of fewer points than this is never tried point by point as well: it is the same."""

NO_INJECTOR = "no injector"
NO_TIMEOUT = "no timeout to wait for"
AFTER = "begins after the answer, where no fault reaches it, and may hurt the device later"
NO_SUCH_KIND = "none of the kinds asked for is possible"
"""Why a point or a fault is out of bounds."""

SOLVER_SECONDS = 2.0
"""The longest the service may stand still for one hypothesis: well within a lease."""


def explorer_of(settings: Settings, shown: Collection[FaultKind] = ()) -> Explorer:
    """Make the explorer of a class by the campaign's settings. ``shown``: kinds that are tried
    besides, as nature has shown them.

    Whatever the cap, it unites no more than a failure context carries.
    """
    return Explorer(
        max_size=settings.max_size,
        strategy=settings.strategy,
        max_union=settings.max_union,
        max_faults=room(
            _written([*settings.kinds, *shown]), delay_ms=max(round(settings.delay * 1000), 1)
        ),
        seed=settings.seed,
        time_limit=SOLVER_SECONDS,
        place=None if settings.each_kind else _place,
    )


def _written(kinds: Iterable[FaultKind]) -> set[FaultKind]:
    """Return every kind that contexts may hold where these are asked for."""
    asked = set(kinds)
    return asked | {*GONE} if "error" in asked else asked


def _place(fault: object) -> str | None:
    """Return the point of a fault; a system that is down is down in one way."""
    kind, _, point = str(fault).partition("@")
    return None if kind in ("down", "shared") else point


@dataclass(slots=True)
class SolverInput:
    """A solver fed with a class's traffic, and then with results.

    ``protected``: patterns of points that nobody may inject into. ``domains``: the points of each.
    ``traces``: examples of what was seen to hurt.
    """

    settings: Settings
    around: ClassContext
    protected: tuple[str, ...] = ()
    explorer: Explorer = field(init=False)
    domains: dict[str, frozenset[str]] = field(default_factory=dict, init=False)
    traces: dict[frozenset[str], tuple[str, ...]] = field(default_factory=dict, init=False)
    kinds: Kinds = field(init=False)
    _unproven: Unproven = field(init=False)
    _errors: dict[str, frozenset[str]] = field(default_factory=dict, init=False)
    _unreached: dict[str, str] = field(default_factory=dict, init=False)
    """Faults that have no injector → why not, where more is known than that."""
    _spared: Counter[Hypothesis] = field(default_factory=Counter, init=False)
    """How often others were hurt, and nobody else, when these were tried."""

    def __post_init__(self) -> None:
        self.kinds = Kinds(
            self.settings.kinds, self.settings.alike, self.around.proxied, dict(self.around.shown)
        )
        self.explorer = explorer_of(
            self.settings, {kind for _, kinds in self.around.shown for kind in kinds}
        )
        self._know_points()
        if "error" in self.settings.kinds:
            for delay, error in sorted(self.around.implications):
                self.explorer.imply(delay, self.kinds.meant(error))
        self._know_domains()
        self._unproven = Unproven(
            {name.removeprefix(DOWN): errors for name, errors in self._errors.items()},
            self.around.topology,
            self.around.given_up,
        )
        self._know_nesting()
        self._know_nature()
        self._widen()

    def take(self, result: ExperimentResult) -> None:
        """Learn one more result; rejected sets are never proposed again."""
        if result.succeeded and not result.degraded:
            self._unproven.add(result.fired, result.called, result.survived)
            self._widen()  # before the record, which judges by it whether anything was closed
        self._record(result)

    def take_all(self, results: Sequence[ExperimentResult]) -> None:
        """Learn all these results at once, without the tries that had no verdict."""
        for each in results:
            if each.succeeded and not each.degraded:
                self._unproven.add(each.fired, each.called, each.survived)
        self._widen()
        for each in results:
            self._record(each)

    def reaches(self, hypothesis: Iterable[str]) -> bool:
        """Return whether every fault has an injector, as far as is known."""
        asked = frozenset(hypothesis)
        down = asked & self.domains.keys()
        needed = frozenset(map(self.kinds.meant, asked - down)).union(*map(self.errors, down))
        return needed.isdisjoint(self._unreached)

    def unreached(self) -> dict[str, str]:
        """Return the points without an injector, with what to install; faults, where only some
        kinds have none."""
        told: dict[str, str] = {}
        for point in sorted(self.around.points):
            faults = self.kinds.at(point)
            without = [each for each in faults if each in self._unreached]
            named = [point] if without == faults else without
            told |= {each: self._lacks(each, without[0]) for each in named} if without else {}
        return told

    def out_of_bounds(self) -> dict[str, str]:
        """Return why each point and fault that nothing can be tried at is not: no injector, no
        timeout to wait for, it begins after the answer, or none of the kinds that are asked for."""
        told: dict[str, str] = {}
        for point in sorted(self.around.points):
            faults = self.kinds.at(point)
            without = [each for each in faults if each in self._unreached]
            if not faults and matching(self.protected, [point]) is None:
                told[point] = f"{NO_SUCH_KIND}: {', '.join(self.settings.kinds)}"
            named = [point] if without == faults and faults else without
            told |= {each: self._why(each, without[0]) for each in named} if without else {}
        return told

    def set_aside(self, faults: Mapping[str, str]) -> None:
        """Never propose these: they have no injector. By fault, why it has none, where that is
        known."""
        self._unreached |= faults
        self.explorer.protect({fault: self._lacks(fault, fault) for fault in faults})

    def _lacks(self, named: str, fault: str) -> str:
        why = self._unreached.get(named, self._unreached[fault])
        point = fault.partition("@")[2]
        if point in self.around.taken_in:
            return NO_CONTEXT
        if point in self.around.after_answer:
            return AFTER_ANSWER
        if why == NO_TIMEOUT:
            return f"a timeout in {point.partition('>')[0]}: nothing ends its waiting there in time"
        return to_install(point, why)

    def _why(self, named: str, fault: str) -> str:
        if fault.partition("@")[2] in self.around.after_answer:
            return AFTER
        why = self._unreached.get(named, self._unreached[fault])
        return why if why == NO_TIMEOUT else f"no injector: {why}" if why else NO_INJECTOR

    def errors(self, domain: str) -> frozenset[str]:
        """Return the errors that make up a domain."""
        return self._errors[domain]

    def with_tokens(self, fired: frozenset[str]) -> frozenset[str]:
        """Return the fired faults with the domains that were down through them."""
        late = {self.kinds.gone(p) for p in self.around.given_up if f"delay@{p}" in fired}
        failed = fired | late
        down = [name for name, errors in self._errors.items() if errors <= failed]
        return fired | {token(name.removeprefix(DOWN)) for name in down}

    def _record(self, result: ExperimentResult) -> None:
        if result.purpose == "rejected":
            self.explorer.exclude(result.injected)
        elif result.succeeded:
            relied_on = self._relied_on(result.relied_on, result.survived)
            self.explorer.record(
                injected=result.injected,
                times=result.times,
                succeeded=True,
                fired=self.with_tokens(result.fired),
                support=None if result.degraded else relied_on,
                met=relied_on if result.degraded else (),
                caused=self._caused(result),
                traces=result.traces,
                proof=result.proof,
            )
        elif result.succeeded is None:
            self._spared[result.injected] += result.spared * result.times
            self.explorer.record(
                injected=result.injected,
                times=result.times,
                succeeded=None,
                hopeless=self._spared[result.injected] >= INTERFERENCES,
                caused=self._caused(result),
                proof=result.proof,
            )
        else:
            self.traces.setdefault(result.fired, result.traces)
            blame = {f for f in result.fired if f.partition("@")[2] in result.suspects}
            self.explorer.record(
                injected=result.injected,
                times=result.times,
                succeeded=False,
                fired=self.with_tokens(result.fired),
                blame=frozenset(blame) or None,
                caused=self._caused(result),
                traces=result.traces,
                proof=result.proof,
            )

    def _know_nature(self) -> None:
        """Learn what traffic relies on and what it survives by itself."""
        self._unproven.add(frozenset(), self.around.called)
        for (relied_on, failed), trace_id in zip(
            self.around.supports, self.around.traces, strict=True
        ):
            support = self._relied_on(relied_on, failed)
            self.explorer.observe(support, failed=self.with_tokens(failed), traces=(trace_id,))
            if failed:
                for fault in sorted(failed - self._within_bounds(failed)):
                    # nobody can inject what only nature does
                    self.explorer.exclude({fault}, impossible=True)
                waited = (fault.partition("@") for fault in relied_on)
                called = frozenset(point for kind, _, point in waited if kind == "delay")
                self._unproven.add(failed, called, failed)

    def _widen(self) -> None:
        """Add to clauses the points that their runs leave unproved."""
        for survived, faults in self._unproven.news():
            holds = self._within_bounds(self.kinds.widened(faults))
            self.explorer.widen(holds, self.with_tokens(survived))

    def _know_points(self) -> None:
        """Protect what may not be tried, and exclude two kinds of fault at one point."""
        limited = {point: (words, why) for point, words, why in self.around.limited}
        for point in sorted(self.around.points):
            faults = self.kinds.at(point)
            if matching(self.protected, [point]) is not None:
                self.explorer.protect(faults)
            elif point in limited:
                words, why = limited[point]
                self.set_aside({each: why for each in faults if lacking(each, words)})
            for pair in combinations(faults, 2):
                self.explorer.exclude(pair, impossible=True)
            if point not in self.around.unlike:
                for one, other in self.kinds.alike_at(point):
                    self.explorer.imply(one, other)
                    self.explorer.imply(other, one)

    def _know_domains(self) -> None:
        if "error" not in self.settings.kinds:
            return
        for system, points in sorted(self.around.topology.shared().items()):
            known = points & self.around.points
            if len(known) > 1:
                self.domains[DOWN + system] = known
                self._errors[DOWN + system] = frozenset(map(self.kinds.gone, known))
                members = {*self.errors(DOWN + system), token(system)}
                self.explorer.add_domain(DOWN + system, members)
                self.explorer.exclude({token(system)}, impossible=True)
                if len(members) <= SPELT_OUT:
                    self.explorer.exclude(self.errors(DOWN + system))

    def _know_nesting(self) -> None:
        """Exclude a fault on a point together with one around it that lets no call through."""
        topology, known = self.around.topology, self.around.points
        alone = {
            fault: frozenset({point}) for point in known for fault in self.kinds.stopping(point)
        }
        nested = {
            frozenset({outer, fault})
            for outer, points in (alone | self.domains).items()
            for inner in (topology.behind(points) - points) & known
            for fault in self.kinds.at(inner)
        }
        for pair in sorted(nested, key=sorted):
            self.explorer.exclude(pair, impossible=True)

    def _relied_on(self, relied_on: frozenset[str], survived: frozenset[str]) -> frozenset[str]:
        return self._within_bounds(self.kinds.relied_on(relied_on, survived))

    def _caused(self, result: ExperimentResult) -> list[tuple[str, str]]:
        """Return which faults caused which, for the kinds that are tried. Others are left out:
        the solver would take them for survived."""
        meant = ((delay, self.kinds.meant(error)) for delay, error in result.implications)
        whole = (pair for pair in meant if self._within_bounds(frozenset(pair)) >= {*pair})
        return sorted(whole)

    def _within_bounds(self, faults: frozenset[str]) -> frozenset[str]:
        shared = (fault for fault in faults if fault.startswith("shared@"))
        return self.kinds.within(faults) | frozenset(shared)
