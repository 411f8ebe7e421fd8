"""Where one namespace is led from, in a process that may lead."""

from __future__ import annotations

from collections.abc import Callable

from ldfi.experiments.cluster.leader import Leader
from ldfi.experiments.cluster.service import Service
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.scheduler.global_controls import GlobalControls
from ldfi.experiments.store import campaign_tallies, findings, leaders
from ldfi.experiments.store.database import Database
from ldfi.experiments.telemetry import clock


class Post:
    """``database``: the store of the namespace. ``changed`` is told the engine whenever this
    process begins to lead it, and None when it ends."""

    def __init__(
        self, service: Service, database: Database, changed: Callable[[Engine | None], None]
    ) -> None:
        self.service = service
        self.database = database
        self.leader: Leader | None = None
        self._changed = changed
        self._epoch = 0

    def enter(self) -> int:
        """Fence off the former leader; return the new epoch. Raises what the database raises."""
        with self.database.change(clock.now()) as change:
            self._epoch = leaders.enter(change.session, self.service.advertise_url)
            campaign_tallies.make_good(change.session)
            findings.make_good(change.session)
        return self._epoch

    def lead(self, global_controls: GlobalControls) -> Leader:
        """Begin to lead, once it is entered. Raises what the database raises."""
        self.leader = Leader(self.service, self.database.fenced(self._epoch), global_controls)
        self._changed(self.leader.engine)
        return self.leader

    async def end(self) -> None:
        """Write everything on record at the end of the service, and let another process lead at
        once."""
        leader = self._left()
        if leader is not None:
            await leader.end("the service was stopped")
            with self.database.change(clock.now()) as change:
                leaders.leave(change.session, self._epoch)

    async def drop(self) -> None:
        """Stop at once and write nothing: another process may lead already."""
        leader = self._left()
        if leader is not None:
            await leader.drop()

    def _left(self) -> Leader | None:
        leader, self.leader = self.leader, None
        if leader is not None:
            self._changed(None)
        return leader
