"""One process leads: the one that holds a lock, for as long as it can show that it does.

On PostgreSQL it is an advisory lock (:mod:`ldfi.experiments.cluster.advisory_lock`), which ends
with the connection that holds it. On SQLite there is one process, and the lock of a file keeps it
alone.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Protocol

from sqlalchemy.engine import make_url

from ldfi.errors import Invalid


class Election(Protocol):
    """A lock that one process can have."""

    async def win(self) -> bool:
        """Try to take the lock; return whether it is ours. Never waits for it."""

    async def holds(self) -> bool:
        """Return whether the lock is still ours; False if that is unknown."""

    async def give_up(self) -> None:
        """Let go of it."""


def election_of(url: str) -> Election:
    """Make the lock that goes with the database at this URL."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "postgresql":
        from ldfi.experiments.cluster.advisory_lock import AdvisoryLock  # needs its driver

        return AdvisoryLock(url)
    if parsed.database in {None, "", ":memory:"}:
        return Alone()
    file = Path(parsed.database or "").resolve()  # whatever links lead there
    return FileLock(Path(f"{file}.lock"))


class FileLock:
    """A file that one process at a time can lock; the kernel lets go of it when it dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    async def win(self) -> bool:
        """See :class:`Election`."""
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Invalid(
                f"{self._path} cannot be opened ({error.strerror}): it stands beside the database, "
                "and this user must be able to write to it"
            ) from error
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
