"""A process that leads whenever nobody else does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from ldfi.experiments.control.engine import Engine
from ldfi.experiments.process.election import Election
from ldfi.experiments.process.leader import Leader
from ldfi.experiments.process.service import Service
from ldfi.experiments.store import findings, leaders, tallies
from ldfi.experiments.store.database import Database
from ldfi.experiments.telemetry import clock

_log = logging.getLogger("ldfi")

LOOK_SECONDS: Final = 1.0
"""How often a leader looks whether it still leads, and everybody else whether anybody does."""


class Candidate:
    """Stands for election again and again. ``changed`` is told the engine whenever this process
    begins to lead, and None when it ends."""

    def __init__(
        self,
        service: Service,
        database: Database,
        election: Election,
        changed: Callable[[Engine | None], None],
    ) -> None:
        self.leader: Leader | None = None
        self._service = service
        self._database = database
        self._election = election
        self._changed = changed
        self._epoch = 0

    async def stand(self) -> bool:
        """Lead, unless somebody else does; whether we do. Raises what the database raises."""
        if not await self._election.win():
            return False
        try:
            with self._database.change(clock.now()) as change:
                self._epoch = leaders.enter(change.session, self._service.advertise_url)
                tallies.make_good(change.session)
                findings.make_good(change.session)
            self.leader = Leader(self._service, self._database.fenced(self._epoch))
        except BaseException:
            await self._election.give_up()
            raise
        self._changed(self.leader.engine)
        _log.info("this process leads, in epoch %d", self._epoch)
        return True

    async def run(self) -> None:
        """Look every second how things stand, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                if self.leader is None:
                    await self.stand()
                elif not await self._election.holds():
                    await self._step_down()
            except Exception:  # noqa: BLE001 - the database may be away for a while
                _log.exception("nobody could be made leader here; trying again")

    async def end(self) -> None:
        """Put everything on record as the service ends, and let somebody else lead at once."""
        leader, self.leader = self.leader, None
        if leader is not None:
            self._changed(None)
            await leader.end("the service was stopped")
            with self._database.change(clock.now()) as change:
                leaders.leave(change.session, self._epoch)
        await self._election.give_up()

    async def _step_down(self) -> None:
        """Stop leading: the lock is lost, so somebody else may lead already. What edges hold
        ends by itself, at the latest with the leases that are on record."""
        leader, self.leader = self.leader, None
        if leader is not None:
            _log.error("this process does not lead any more: it has lost the lock of leaders")
            self._changed(None)
            await leader.drop()
