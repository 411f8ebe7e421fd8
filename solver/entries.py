"""The runs of an exploration as a certificate lists them, each as it is firmly read as well."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ldfi.solver.language import Language
from ldfi.solver.names import name_of, names_of
from ldfi.solver.order import Faults, set_key
from ldfi.solver.runs import Run, RunLog


@dataclass(frozen=True, slots=True)
class Doubt:
    """What of the runs is firm. ``runs``: these alone, as they are firmly read; ``places``: which
    experiment, in order, each of their experiments is. ``survived``, ``failed``: how often the same
    has to be seen before it is firm. ``unsettled``: sets that hurt although others say they cannot.
    """

    runs: RunLog
    places: Sequence[int]
    survived: int
    failed: int
    unsettled: Sequence[Faults] = ()


@dataclass(frozen=True)
class Entry:
    """A run as the certificate lists it. ``firmly``: as it is firmly read, None if it is not."""

    run: Run
    firmly: Run | None
    among: str = "both"

    def written(self, number: int, *, recheck: bool) -> dict[str, Any]:
        """Return it as an object of the certificate's ``evidence``."""
        run = self.run
        said: dict[str, Any] = {
            "number": number,
            "origin": run.origin,
            "failed": names_of(run.failed),
            "support": None if run.support is None else names_of(run.support),
        }
        if run.origin == "caution":
            return {**said, "among": self.among}
        said["traces"] = list(run.traces)
        if run.origin == "observed":
            return {**said, "count": run.count}
        if run.proof is not None:
            said["proof"] = dict(run.proof)
        return {
            **said,
            "injected": names_of(run.injected),
            "good": run.good,
            "firm": self._firm(),
            "recheck": recheck,
            "caused": sorted([name_of(one), name_of(other)] for one, other in run.caused),
        }

    def _firm(self) -> bool | list[str]:
        if self.firmly is None or self.firmly is self.run:
            return self.firmly is not None
        return names_of(self.firmly.failed)


def learn_firm(language: Language, doubt: Doubt | None) -> None:
    """Give a number in ``language`` to every fault that the firm runs name."""
    for run in () if doubt is None else doubt.runs.all:
        language.learn(run.failed | run.injected | (run.support or frozenset()))


def entries_of(runs: RunLog, doubt: Doubt | None) -> list[Entry]:
    """Return the entries of a certificate: cautions first, then runs in order, each with its firm
    reading."""
    firmly = None if doubt is None else doubt.runs
    found = list(_cautions(runs, firmly))
    experiments: dict[int, Run] = {}
    if doubt is not None:
        experiments = dict(zip(doubt.places, doubt.runs.experiments, strict=True))
    count = 0
    for run in runs.all:
        if run.origin == "caution":
            continue
        firm: Run | None = run
        if run.origin == "injected" and doubt is not None:
            firm = experiments.get(count)
            if firm is not None and firm.failed == run.failed:
                firm = run
            count += 1
        found.append(Entry(run, firm))
    return found


def _cautions(runs: RunLog, firmly: RunLog | None) -> Iterable[Entry]:
    every = _gathered(runs)
    firm = every if firmly is None else _gathered(firmly)
    for failed in sorted({*every, *firm}, key=set_key):
        one, other = every.get(failed, frozenset()), firm.get(failed, frozenset())
        for faults, among in ((one & other, "both"), (one - other, "all"), (other - one, "firm")):
            if faults:
                run = Run("caution", failed, faults)
                yield Entry(run, None if among == "all" else run, among)


def _gathered(runs: RunLog) -> dict[Faults, Faults]:
    found: dict[Faults, Faults] = {}
    for run in runs.all:
        if run.origin == "caution":
            found[run.failed] = found.get(run.failed, frozenset()) | (run.support or frozenset())
    return found
