"""The lock of leaders on PostgreSQL: an advisory lock, held by a connection of its own.

It ends with that connection: at once when the process dies, and within :data:`GONE_SECONDS` when
its machine or the network does, for both ends look whether the other is still there.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

import psycopg
from sqlalchemy.engine import make_url

_log = logging.getLogger("ldfi")

KEY: Final = 7215032
"""Of the advisory lock; it is one of this database, so every ldfi has its own."""

ANSWER_SECONDS: Final = 4.0
"""Without an answer from the database for so long, the lock counts as lost."""

GONE_SECONDS: Final = 4.0
"""After so long without a sign of life, either end gives the connection up."""

_ALIVE: Final = {
    "keepalives": 1,
    "keepalives_idle": 1,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": int(GONE_SECONDS * 1000),
    "connect_timeout": int(ANSWER_SECONDS),
    "application_name": "ldfi leader",
    "options": "-c statement_timeout=0 -c idle_session_timeout=0 -c tcp_keepalives_idle=1 "
    "-c tcp_keepalives_interval=1 -c tcp_keepalives_count=3 "
    f"-c tcp_user_timeout={int(GONE_SECONDS * 1000)}",
}


class AdvisoryLock:
    """A session's advisory lock in PostgreSQL. A pool that deals statements of one session to
    several connections cannot hold one: connect directly, or pool by sessions."""

    def __init__(self, url: str) -> None:
        parsed = make_url(url)
        self._options = dict(parsed.get_dialect()().create_connect_args(parsed)[1])
        self._connection: psycopg.AsyncConnection[Any] | None = None

    async def win(self) -> bool:
        """See :class:`ldfi.experiments.cluster.election.Election`."""
        return await self._true("SELECT pg_try_advisory_lock(%s)")

    async def holds(self) -> bool:
        """See :class:`ldfi.experiments.cluster.election.Election`."""
        if self._connection is None:
            return False
        return await self._true(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted "
            "AND pid = pg_backend_pid() AND classid = 0 AND objid = %s)"
        )

    async def give_up(self) -> None:
        """See :class:`ldfi.experiments.cluster.election.Election`."""
        if self._connection is not None:
            await self._true("SELECT pg_advisory_unlock(%s)")
        await self._disconnect()

    async def _true(self, question: str) -> bool:
        """Ask PostgreSQL; False, and a new connection next time, when it does not."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                if self._connection is None:
                    self._connection = await psycopg.AsyncConnection.connect(
                        **{**self._options, **_ALIVE}, autocommit=True
                    )
                cursor = await self._connection.execute(question.encode(), (KEY,))
                row = await cursor.fetchone()
                return bool(row is not None and row[0])
        except (psycopg.Error, OSError, TimeoutError) as error:
            _log.warning("the lock of leaders cannot be asked for: %s", str(error) or "no answer")
            await self._disconnect()
            return False

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
