"""The runs in the order in which they were learned, as a certificate lists them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from ldfi.solver.order import Fault, Faults

Origin: TypeAlias = Literal["observed", "injected", "caution"]
EXEMPLARS = 5
"""Traces that are kept of one run, or of one shape of run."""


@dataclass(slots=True)
class Run:
    """An experiment, a shape of good run that was observed, or a caution.

    ``failed``: what failed in it, by nature or by injection. ``support``: what the good outcome
    relied on; None if that is not known. ``good`` None: there was no verdict. ``caused``: pairs
    (stronger, weaker) of faults of which the one was seen to bring the other about. ``proof``:
    whatever shows that it took place; nothing follows from it here. A caution is no run: it says
    what a clause holds although no run of it relied on that.
    """

    origin: Origin
    failed: Faults
    support: Faults | None = None
    good: bool | None = True
    injected: Faults = frozenset()
    caused: tuple[tuple[Fault, Fault], ...] = ()
    count: int = 1
    traces: list[str] = field(default_factory=list)
    proof: Mapping[str, Any] | None = None

    @property
    def teaches(self) -> bool:
        """Return whether anything follows from it: not where nothing of what was injected fired,
        unless what the good outcome relied on is known."""
        if self.origin != "injected" or (self.good and self.support is not None):
            return True
        return self.good is not None and bool(self.failed or not self.injected)

    def saw(self, traces: Iterable[str]) -> None:
        """Keep some of these traces as examples."""
        for trace in traces:
            if len(self.traces) >= EXEMPLARS:
                break
            if trace not in self.traces:
                self.traces.append(trace)


@dataclass(slots=True)
class RunLog:
    """All of them. Observed runs of one shape are counted, experiments stand by themselves."""

    all: list[Run] = field(default_factory=list)
    _observed: dict[tuple[Faults, Faults], Run] = field(default_factory=dict)

    def observe(self, failed: Faults, support: Faults, traces: Iterable[str]) -> Run:
        """Count a good run that nobody injected anything into, and return its shape."""
        run = self._observed.get((failed, support))
        if run is None:
            run = self._observed[failed, support] = Run("observed", failed, support)
            self.all.append(run)
        else:
            run.count += 1
        run.saw(traces)
        return run

    def add(self, run: Run, traces: Iterable[str] = ()) -> None:
        """Add an experiment, or a caution."""
        run.saw(traces)
        self.all.append(run)

    def copy(self) -> RunLog:
        """Make one of the same runs, that does not count on with this one."""
        return RunLog([replace(run, traces=list(run.traces)) for run in self.all])

    @property
    def experiments(self) -> list[Run]:
        """Return the experiments alone."""
        return [run for run in self.all if run.origin == "injected"]
