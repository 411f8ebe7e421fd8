"""The explorer: one request class, from its first good run to its certificate.

It holds what is known (:mod:`ldfi.solver.equation`), asks a strategy for the next experiment, and
takes in what came of it. Everything it proposes is still unknown, and everything recorded makes
something known or uses up a bounded number of attempts, so it always comes to an end.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from itertools import islice
from typing import Any, Literal

from ldfi.solver.certificate import Certificate
from ldfi.solver.certify import Statement
from ldfi.solver.deadline import Deadline
from ldfi.solver.entries import Doubt
from ldfi.solver.equation import Equation, Violation
from ldfi.solver.errors import InvalidRecord
from ldfi.solver.findings import exact_findings, minimal_failing_sets
from ldfi.solver.hypotheses import Hypotheses
from ldfi.solver.language import Language
from ldfi.solver.open_hypotheses import Listing
from ldfi.solver.order import Faults, ordered, set_key
from ldfi.solver.pairs import Pairs
from ldfi.solver.presumed import Place, with_presumed
from ldfi.solver.rechecks import Rechecks
from ldfi.solver.reduce import next_part
from ldfi.solver.runs import Run, RunLog
from ldfi.solver.sat import SatSolver
from ldfi.solver.search import Search
from ldfi.solver.strategies import Strategy
from ldfi.solver.strategies.likeliest import Likeliest
from ldfi.solver.strategies.smallest import Smallest
from ldfi.solver.strategies.union import Union
from ldfi.solver.suspects import Suspects

Judgement = Literal["failing", "safe", "open"]
"""What is known of a set of faults; ``open`` is nothing."""

STRATEGIES: dict[str, type[Strategy]] = {
    "smallest": Smallest,
    "likeliest": Likeliest,
    "union": Union,
}


class Explorer:
    """Finds all minimal failing sets of at most ``max_size`` variables (None: of any size).

    ``faults``: those known; the set grows with every support. ``strategy``: ``union``,
    ``smallest`` or ``likeliest``. ``domains``: per domain its member faults; a domain counts as one
    variable. ``costs``: of trying a fault, 1 if not given; with costs, ``smallest`` means cheapest.
    ``likelihoods``: of a fault's being harmful, between 0 and 1, for ``likeliest``.
    ``protected``: never proposed, nor any domain around them. ``exclusions``: sets of faults never
    proposed together. ``down``: faults assumed to be down throughout; proposals and findings come
    without them. ``max_union``: the largest number of variables in one proposal. ``max_faults``:
    of point faults that a union may bring about. ``time_limit``: seconds for one proposal.
    ``max_inconclusive``: attempts after which a hypothesis stays open.
    ``deterministic``: runs do not vary (a simulation), so every support is a clause by itself.
    ``monotone`` False: more faults may help, so a good run says nothing about sets that do not
    contain what failed in it, and unions would teach little; take another strategy.
    ``place``: of a fault, so that where one kind was found to hurt, others there are *presumed*.

    The same seed gives the same exploration, unless the time limit is reached. What is proposed
    depends on what was learned and on how often it was asked for since, not on what was asked for
    before that: whoever learns the same again goes on in the same way.
    """

    def __init__(
        self,
        faults: Iterable[Hashable] = (),
        *,
        max_size: int | None = 2,
        strategy: str = "union",
        seed: int = 0,
        domains: Mapping[Any, Collection[Hashable]] | None = None,
        costs: Mapping[Any, float] | None = None,
        likelihoods: Mapping[Any, float] | None = None,
        protected: Iterable[Hashable] = (),
        exclusions: Iterable[Iterable[Hashable]] = (),
        down: Iterable[Hashable] = (),
        max_union: int | None = None,
        max_faults: int | None = None,
        time_limit: float | None = 5.0,
        max_inconclusive: int = 3,
        deterministic: bool = False,
        monotone: bool = True,
        place: Place | None = None,
    ) -> None:
        _check_bounds(strategy, max_size, max_union, monotone=monotone)
        _check_costs(costs or {})
        self.max_size = max_size
        self.max_union = max_union
        self.max_faults = max_faults
        self.time_limit = time_limit
        self.max_inconclusive = max_inconclusive
        self.optimal = True
        self.experiments = 0
        self._language = Language()
        self._language.learn(faults)
        for name in ordered(domains or ()):
            self._language.add_domain(name, (domains or {})[name])
        self._language.protect(frozenset(protected))
        for together in sorted((frozenset(each) for each in exclusions), key=set_key):
            self._language.exclude(together)
        self._down, self._place = frozenset(down), place
        self._equation = Equation(
            self._language, self._down, deterministic=deterministic, monotone=monotone
        )
        self._costs = dict(costs or {})
        self.likelihoods = dict(likelihoods or {})
        self._seed = seed
        self._drawn: tuple[Hypotheses | None, int, Counter[str]] = None, 0, Counter()
        self._strategy: Strategy = STRATEGIES[strategy]()
        self._sat = SatSolver()
        self._listing = Listing()
        self._pairs = Pairs()
        self._attempts: dict[Faults, int] = {}
        self._rechecks = Rechecks()
        self.runs = RunLog()
        self._suspects = Suspects()
        self._snapshot: tuple[tuple[int, ...], Hypotheses] | None = None

    def observe(
        self,
        support: Iterable[Hashable],
        failed: Iterable[Hashable] = frozenset(),
        traces: Iterable[str] = (),
    ) -> None:
        """Learn from a good run nobody injected into; ``failed`` failed in it by nature."""
        self._equation.learn(self.runs.observe(frozenset(failed), frozenset(support), traces))

    def widen(self, faults: Iterable[Hashable], survived: Iterable[Hashable]) -> None:
        """Add ``faults`` to the clause of the runs that survived ``survived``, although none of
        them relied on these faults."""
        caution = Run("caution", frozenset(survived), frozenset(faults))
        self._language.learn(caution.failed | frozenset(faults))
        self.runs.add(caution)
        self._equation.learn(caution)

    def suspect(self, blame: Iterable[Hashable], failed: Iterable[Hashable]) -> None:
        """Suspect these of a failure that nobody injected into, and in which ``failed`` failed."""
        self._suspect(frozenset(failed), blame)

    def propose(self) -> Faults | None:
        """Choose the next experiment; None when nothing is left within the bounds.

        An empty set says that nothing is known yet: run it with nothing injected. Raises OutOfTime.
        """
        # The tenth that is left is for finishing what the interruption cut short.
        limit = None if self.time_limit is None else 0.9 * self.time_limit
        with Deadline(limit) as deadline:
            search = self._search(deadline)
            chosen = self._suspects.next(search)
            if chosen is None:
                chosen = next_part(search)
            if chosen is None:
                chosen = self._strategy.choose(search)
            self.optimal = search.optimal
        return None if chosen is None else self._language.faults(chosen)

    def recheck(self) -> Faults | None:
        """Draw a set that was inferred to be safe but never tried; None if none was met.

        Trying a few of these and recording what happens measures how far "more faults never help"
        holds; the certificate gives the rate.
        """
        return self._rechecks.draw(self._now(), self._draw("recheck"))

    def record(
        self,
        *,
        injected: Iterable[Hashable],
        succeeded: bool | None,
        support: Iterable[Hashable] | None = None,
        fired: Iterable[Hashable] | None = None,
        blame: Iterable[Hashable] | None = None,
        met: Iterable[Hashable] = (),
        caused: Iterable[tuple[Hashable, Hashable]] = (),
        traces: Iterable[str] = (),
        proof: Mapping[str, Any] | None = None,
        times: int = 1,
        hopeless: bool = False,
    ) -> None:
        """Learn from an experiment. ``succeeded`` None: tried again unless ``hopeless``.

        ``support``: what the good outcome relied on; None if not known, then only what fired is
        closed, and less than that if more faults never help. ``fired``: those of the faults that
        took effect, all if None. ``blame``: those suspected of the failure. ``met``: faults that
        were possible in it, to be tried from now on. ``caused``: pairs of which the one was seen to
        bring the other about, as evidence for :meth:`imply`. ``proof``: what shows that it took
        place, for the certificate. ``times``: so many taught just the same, and of them this one is
        left. Raises InvalidRecord for a bad run with a support.
        """
        if succeeded is False and support is not None:
            raise InvalidRecord("a failed run has no support; give the faults that fired")
        injected = frozenset(injected)
        took_effect = injected if fired is None else frozenset(fired)
        relied_on = frozenset(support) if succeeded and support is not None else None
        run = Run(
            "injected", took_effect, relied_on, succeeded, injected, tuple(caused), proof=proof
        )
        self._language.learn(injected)
        self._language.learn(met)
        self._suspects.acquit(self._language.variables(injected), self._language.expand(injected))
        self._language.learn(each for pair in run.caused for each in pair)
        self.experiments += times
        if succeeded is not None:
            self._rechecks.note(injected, safe=self.judge(injected) == "safe")
        self.runs.add(run, traces)
        self._equation.learn(run)
        if succeeded is False and run.teaches:
            self._suspect(took_effect, blame)
        if self.judge(injected) == "open" and self.admissible(injected):
            more = self.max_inconclusive if hopeless else 1
            self._attempts[injected] = self._attempts.get(injected, 0) + more

    @property
    def findings(self) -> tuple[Faults, ...]:
        """Return minimal failing sets up to ``max_size``, none said better by another one."""
        now = self._now()
        return self._as_faults(exact_findings(now, minimal_failing_sets(now)))

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Return what was seen to contradict "more faults never help"."""
        self._equation.refresh()
        return tuple(self._equation.violations())

    @property
    def doubtful(self) -> tuple[Faults, ...]:
        """Return sets that were seen to fail although a good run shows them to be safe.

        Either more faults helped, or the failure came of something else: only trying the same once
        more can tell. The explorer itself believes the failure.
        """
        self._equation.refresh()
        return tuple(self._equation.doubtful())

    def judge(self, faults: Iterable[Hashable]) -> Judgement:
        """Return what is known of exactly these faults together: ``safe``, ``failing`` or
        ``open``."""
        expansion = self._language.expand(faults)  # which may be news
        self._equation.refresh()  # what is presumed does not matter, and takes long to work out
        if self._equation.is_failing(expansion):
            return "failing"
        return "safe" if self._equation.is_safe(expansion) else "open"

    def survivals(self, faults: Iterable[Hashable]) -> tuple[Faults, ...]:
        """Return what had failed in the good runs that show these faults to be safe."""
        expansion = self._language.expand(faults)
        self._equation.refresh()
        return tuple(sorted(self._equation.survivals(expansion), key=set_key))

    def admissible(self, faults: Iterable[Hashable]) -> bool:
        """Return whether these may be proposed together: none is protected, no exclusion applies.
        False for unknown faults."""
        known = (fault for fault in faults if fault in self._language.index)
        return self._now().admissible(self._language.variables(known))

    def open_hypotheses(self, limit: int | None = None) -> tuple[Faults, ...]:
        """Return the minimal open hypotheses, at most ``limit`` of them."""
        return self._as_faults(list(islice(self._now().minimal(), limit)))

    def open_count(self, limit: int = 10_000) -> int:
        """Count the minimal open hypotheses; counting ends at ``limit``."""
        if self._pairs.follow(self._now(), ()):
            return min(len(self._pairs), limit)
        return sum(1 for _ in islice(self._now().minimal(), limit))

    def add_domain(self, name: Hashable, members: Collection[Hashable]) -> None:
        """Add these faults to the domain ``name``."""
        self._language.add_domain(name, members)

    def exclude(self, faults: Iterable[Hashable], *, impossible: bool = False) -> None:
        """Never propose these together; a single one: never by itself, only inside a domain.

        ``impossible``: nothing is lost by that, for they cannot happen. A certificate says so, as
        an assumption; all else counts as left out.
        """
        self._language.exclude(faults, impossible=impossible)

    def protect(self, faults: Iterable[Hashable] | Mapping[Any, str]) -> None:
        """Never propose these, nor a domain with one of them. A mapping gives, for each fault that
        no injector can reach, what would help."""
        self._language.protect(faults)

    def imply(self, stronger: Hashable, weaker: Hashable) -> None:
        """Learn that ``stronger`` was seen to make ``weaker`` happen too."""
        self._language.imply(stronger, weaker)

    def certificate(self, doubt: Doubt | None = None) -> Certificate:
        """Return the certificate of what is known now, which :mod:`ldfi.checker.solving` can
        verify.

        ``doubt``: what of it is firm enough for anything to rest on; all of it if None.
        """
        return self.statement(doubt).certificate()

    def statement(self, doubt: Doubt | None = None) -> Statement:
        """Return a snapshot from which the certificate can be written while this goes on
        learning."""
        now = self._now()
        language = now.language.copy()
        copied = Hypotheses(language, now.equation.copy(language), self.max_size)
        return Statement(copied, self.runs.copy(), self._down, doubt)

    def _now(self) -> Hypotheses:
        self._equation.refresh()
        if self._snapshot is None or self._snapshot[0] != self._equation.state:
            now = with_presumed(self._language, self._equation, self.max_size, self._place)
            self._snapshot = self._equation.state, now
        return self._snapshot[1]

    def _draw(self, what: str) -> random.Random:
        """Return a random generator, seeded differently after each thing learned."""
        now = self._now()
        if self._drawn[0] is not now or self._drawn[1] != self.experiments:
            self._drawn = now, self.experiments, Counter()
        asked = self._drawn[2]
        asked[what] += 1
        return random.Random(f"{self._seed} {self.experiments} {what} {asked[what]}")

    def _search(self, deadline: Deadline) -> Search:
        now = self._now()
        known = ((self._language.variables(each), n) for each, n in self._attempts.items())
        return Search(
            now=now,
            sat=self._sat,
            listing=self._listing,
            rng=self._draw("propose"),
            deadline=deadline,
            attempts={each: n for each, n in known if now.is_open(each)},
            max_attempts=self.max_inconclusive,
            max_union=self.max_union,
            costs=self._costs,
            likelihoods=self.likelihoods,
            known_pairs=self._pairs,
            max_faults=self.max_faults,
            mute=self._suspects.mute,
            named=self._suspects.named,
            interacting=self._equation.interacting(),
        )

    def _suspect(self, fired: Faults, blame: Iterable[Hashable] | None) -> None:
        blamed = frozenset(blame or ())
        self._language.learn(blamed | fired)
        self._suspects.add(self._language.variables(blamed), self._language.expand(fired))

    def _as_faults(self, sets: Iterable[int]) -> tuple[Faults, ...]:
        return tuple(sorted((self._language.faults(each) for each in sets), key=set_key))


def _check_bounds(
    strategy: str, max_size: int | None, max_union: int | None, *, monotone: bool
) -> None:
    if strategy not in STRATEGIES:
        raise InvalidRecord(f"strategy {strategy!r} is unknown; take one of {[*STRATEGIES]}")
    if max_size is not None and max_size < 1:
        raise InvalidRecord(f"max_size {max_size} leaves nothing to try; take 1 or more")
    if max_union is not None and max_union < 1:
        raise InvalidRecord(f"max_union {max_union} leaves nothing to try; take 1 or more")
    if strategy == "union" and not monotone:
        raise InvalidRecord(
            "strategy 'union' learns nothing from a set that survives if more faults may help"
            " (monotone=False); take another strategy"
        )


def _check_costs(costs: Mapping[Any, float]) -> None:
    for name, cost in costs.items():
        if cost <= 0:
            raise InvalidRecord(f"the cost {cost} of {name!r} is not positive")
