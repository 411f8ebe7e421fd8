"""A process that leads whenever nobody else does: the default namespace, and with it all others.

Whoever leads has entered every store before anything is armed in any: so what an old leader still
does, there or elsewhere, is either done before or refused.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from ldfi.experiments.cluster.election import Election
from ldfi.experiments.cluster.leader import Leader
from ldfi.experiments.cluster.namespace_candidate import Post
from ldfi.experiments.scheduler.global_controls import GlobalControls
from ldfi.experiments.store.database import Database

_log = logging.getLogger("ldfi")

LOOK_SECONDS: Final = 1.0
"""How often a leader looks whether it still leads, and everybody else whether anybody does."""


class Candidate:
    """Stands for election again and again. ``default``: where the default namespace is led.
    ``gather`` has every other namespace on record :meth:`join` that has not yet."""

    def __init__(
        self, default: Post, election: Election, gather: Callable[[], Awaitable[None]]
    ) -> None:
        self._default = default
        self._others: list[Post] = []
        self._election = election
        self._gather = gather

    @property
    def leader(self) -> Leader | None:
        """Return the leader of the default namespace; None while another process leads."""
        return self._default.leader

    async def stand(self) -> bool:
        """Try to lead; return whether we do. Raises what the database raises."""
        if not await self._election.win():
            return False
        try:
            await self._gather()
            epoch, *_ = [each.enter() for each in self._posts()]
            for each in self._posts():
                each.lead(self._global_controls(each))
        except BaseException:
            await self._drop()
            await self._election.give_up()
            raise
        _log.info("this process leads, in epoch %d", epoch)
        return True

    def join(self, post: Post) -> None:
        """Lead another namespace too, whenever this process leads. Raises what the database
        raises."""
        if self.leader is not None:
            post.enter()
            post.lead(self._global_controls(post))
        self._others.append(post)

    async def run(self) -> None:
        """Look every second how things stand, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                if self.leader is None:
                    await self.stand()
                elif not await self._election.holds():
                    _log.error(
                        "this process does not lead any more: it has lost the lock of leaders"
                    )
                    await self._drop()
            except Exception:  # noqa: BLE001 - the database may be away for a while
                _log.exception("nobody could be made leader here; trying again")

    async def end(self) -> None:
        """Write everything on record at the end of the service, and release the lock."""
        for each in reversed(self._posts()):
            await each.end()
        await self._election.give_up()

    async def _drop(self) -> None:
        """Stop leading, since the lock is lost and another process may lead already. Edges stop
        by themselves, at the latest with the leases on record."""
        led = [each.leader for each in self._posts() if each.leader is not None]
        for leader in led:
            leader.engine.board.close()
        for each in self._posts():
            await each.drop()

    def _posts(self) -> list[Post]:
        return [self._default, *self._others]

    def _global_controls(self, post: Post) -> GlobalControls:
        """Return the halt, guardrails and limits shared by all namespaces, for the one led
        there."""

        def others() -> Sequence[Database]:
            return [each.database for each in self._posts() if each is not post]

        limits, leader = self._default.service.limits, self.leader
        if post is self._default or leader is None:
            return GlobalControls(others=others, limits=limits)
        state = leader.engine.scheduler.state
        return GlobalControls(
            halted=lambda: state.halted,
            breach=lambda: state.breach,
            default=leader.database,
            others=others,
            limits=limits,
        )
