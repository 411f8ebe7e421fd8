"""Keeps on record what injectors have reported, and forgets what was not heard of for long."""

from __future__ import annotations

from ldfi.experiments.domain.traffic.injectors import Injectors
from ldfi.experiments.store import injectors
from ldfi.experiments.store.database import Database

KEEP_SECONDS = 1.0
"""How often is put on record what is new."""

KEPT_AT_ONCE = 20
"""Callers put on record in one step: all at once would hold up everything else."""

EXPIRE_SECONDS = 600.0


class ReportKeeper:
    """Raises what the database raises."""

    def __init__(self, db: Database, known: Injectors) -> None:
        self._db = db
        self._known = known
        self._next_keep = self._next_expire = 0.0

    def keep(self, now: float, *, at_once: bool = False) -> None:
        """Write new reports when it is due; all of them if ``at_once``."""
        if now >= self._next_expire:
            self._next_expire = now + EXPIRE_SECONDS
            self._known.expire(now)
        if now < self._next_keep and not at_once:
            return
        self._next_keep = now + KEEP_SECONDS
        unkept = list(self._known.unkept().items())
        some = dict(unkept if at_once else unkept[:KEPT_AT_ONCE])
        if some:
            with self._db.change(now) as change:
                injectors.save(change, some)
            self._known.kept(some, now)
