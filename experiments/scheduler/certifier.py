"""Certificates, written beside the event loop: one class at a time, when it has learned.

A class with hundreds of points takes a second or two. What is to be written is copied in the loop,
which takes no time, and nothing in the copy changes any more; so the writing may be done in a
thread while the class learns on.
"""

from __future__ import annotations

import asyncio
import logging

from ldfi.experiments.domain.campaign.knowledge import Knowledge, unseen_of
from ldfi.experiments.scheduler.record import Record, uncertified
from ldfi.experiments.scheduler.state import State

_log = logging.getLogger("ldfi")

PAUSE_SECONDS = 0.2
"""How often is looked up whether a class has learned."""


class Certifier:
    """Writes the certificates of all campaigns that are not over, and of those just over."""

    def __init__(self, record: Record, state: State) -> None:
        self._record = record
        self._state = state

    async def run(self) -> None:
        """Write until cancelled. From then on certificates are written on the spot again."""
        self._record.beside = True
        try:
            while True:
                for campaign in list(self._state.campaigns.values()):
                    for knowledge in uncertified(campaign):
                        await self._write(knowledge)
                await asyncio.sleep(PAUSE_SECONDS)
        finally:
            self._record.beside = False

    async def _write(self, knowledge: Knowledge) -> None:
        filing, changes = knowledge.filing, knowledge.filing.changes
        try:
            statement = knowledge.statement()
            changes = filing.changes
            certificate = await asyncio.to_thread(statement.certificate)
        except Exception:  # noqa: BLE001 - of this class's, whatever it is; the others go on
            _log.exception("the certificate of %s could not be written", knowledge.name)
            filing.give_up(changes)
        else:
            filing.file(changes, knowledge.name, certificate, unseen_of(knowledge))
