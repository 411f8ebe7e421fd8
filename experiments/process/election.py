"""One process leads: the one that holds a lock, for as long as it can show that it does.

On PostgreSQL it is an advisory lock, held by a connection of its own. It ends with that connection:
at once when the process dies, and within :data:`GONE_SECONDS` when its machine or the network does,
for both ends look whether the other is still there. On SQLite there is one process, and the lock of
a file keeps it alone.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from pathlib import Path
from typing import Any, Final, Protocol

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


class Election(Protocol):
    """A lock that one process can have."""

    async def win(self) -> bool:
        """Take the lock; whether it is ours. Never waits for somebody else to let go."""

    async def holds(self) -> bool:
        """Tell whether the lock is still ours. When that cannot be told, it is not."""

    async def give_up(self) -> None:
        """Let go of it."""


def election_of(url: str) -> Election:
    """Make the lock that goes with the database at this URL."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "postgresql":
        return AdvisoryLock(url)
    if parsed.database in {None, "", ":memory:"}:
        return Alone()
    return FileLock(Path(f"{parsed.database}.lock"))


class AdvisoryLock:
    """A session's advisory lock in PostgreSQL. A pool that deals statements of one session to
    several connections cannot hold one: connect directly, or pool by sessions."""

    def __init__(self, url: str) -> None:
        parsed = make_url(url)
        self._options = dict(parsed.get_dialect()().create_connect_args(parsed)[1])
        self._connection: psycopg.AsyncConnection[Any] | None = None

    async def win(self) -> bool:
        """See :class:`Election`."""
        return await self._true("SELECT pg_try_advisory_lock(%s)")

    async def holds(self) -> bool:
        """See :class:`Election`."""
        if self._connection is None:
            return False
        return await self._true(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted "
            "AND pid = pg_backend_pid() AND classid = 0 AND objid = %s)"
        )

    async def give_up(self) -> None:
        """See :class:`Election`."""
        if self._connection is not None:
            await self._true("SELECT pg_advisory_unlock(%s)")
        await self._disconnect()

    async def _true(self, question: str) -> bool:
        """Ask PostgreSQL a question; False, and a new connection next time, when it does not
        answer."""
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


class FileLock:
    """A file that one process at a time can lock; the kernel lets go of it when it dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    async def win(self) -> bool:
        """See :class:`Election`."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        self._file = file
        return True

    async def holds(self) -> bool:
        """See :class:`Election`."""
        return self._file is not None

    def __str__(self) -> str:
        return f"another process holds {self._path}"

    async def give_up(self) -> None:
        """See :class:`Election`."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class Alone:
    """Nobody else can have a database in memory."""

    async def win(self) -> bool:
        """See :class:`Election`."""
        return True

    async def holds(self) -> bool:
        """See :class:`Election`."""
        return True

    async def give_up(self) -> None:
        """See :class:`Election`."""
