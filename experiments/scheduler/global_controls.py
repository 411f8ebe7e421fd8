"""What stands over a namespace: the halt, the guardrails and the limits of all of them.

The default namespace stands over the others, for whoever runs the service has its tokens: where it
is halted, or a guardrail does not hold, nothing is armed anywhere. What is over the default one
itself is only that all share the limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ldfi.experiments.domain.settings import Limits
from ldfi.experiments.store.arming import Armed, Order, Refused, arm
from ldfi.experiments.store.database import Database


def _nothing() -> None:
    return None


def _nobody() -> Sequence[Database]:
    return ()


@dataclass(frozen=True, slots=True)
class GlobalControls:
    """As one namespace sees it. By default it is the only one, and nothing is over it.

    ``halted``: why all are halted. ``breach``: the guardrail of all that does not hold.
    ``default``: the store of the default namespace, None for that one itself; fenced. ``others``:
    the stores of all namespaces but this one. ``limits``: what they may together.
    """

    halted: Callable[[], str | None] = _nothing
    breach: Callable[[], str | None] = _nothing
    default: Database | None = None
    others: Callable[[], Sequence[Database]] = _nobody
    limits: Limits | None = None

    def arm(self, db: Database, order: Order, own: Limits, now: float) -> Armed | Refused:
        """Put an experiment on record as armed; return why not, if not. Raises what the database
        raises."""
        beside = self.others()
        with self._locked(now), db.change(now) as change:
            return arm(db, change, order, own, beside or None, self.limits)

    @contextmanager
    def _locked(self, now: float) -> Iterator[None]:
        """Keep all others from arming: see :mod:`ldfi.experiments.store.arming`."""
        if self.default is None:  # its own transaction takes that lock
            yield
            return
        with self.default.change(now) as change:
            self.default.lock(change)
            yield
