"""Why a database cannot be worked with, in one sentence for whoever started a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from ldfi.errors import Conflict, ExperimentsError, Invalid, Unreachable

_OF_SQLITE = {
    "file is not a database": (
        Invalid,
        "is not a database of SQLite: name another file, or put a backup back",
    ),
    "malformed": (Invalid, "is damaged: put a backup back (docs/operations.md)"),
    "unable to open": (
        Invalid,
        "cannot be opened: it must be a file in a folder that is there and that this user may "
        "write to",
    ),
    "readonly": (Invalid, "cannot be written to by this user: change its owner, or name another"),
    "locked": (
        Conflict,
        "is being written to by another process: wait for it, stop it, or use PostgreSQL, which "
        "several processes can share",
    ),
    "full": (Unreachable, "cannot grow: the disk is full"),
}
"""What SQLite says, and what that means."""


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Raise what goes wrong with the database at ``url`` as Invalid, Conflict or Unreachable, with
    the way out; no password is in the message."""
    try:
        yield
    except SQLAlchemyError as error:
        raise cannot_use(url, error) from error


def cannot_use(url: str, error: Exception) -> ExperimentsError:
    """Make the error that says what is wrong with the database at ``url``."""
    parsed = make_url(url)
    said = str(getattr(error, "orig", None) or error).strip()
    if parsed.get_backend_name() == "sqlite":
        for what, (kind, means) in _OF_SQLITE.items():
            if what in said:
                return kind(f"the database {parsed.database} {means}")
    shown = parsed.render_as_string(hide_password=True)
    return Unreachable(f"no database at {shown}: {' '.join(said.split())}")
