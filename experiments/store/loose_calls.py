"""Calls that run in traces of their own, as people have said whose they are: on record."""

from __future__ import annotations

from typing import Final

from sqlalchemy.orm import Session

from ldfi.experiments.store.database import Change
from ldfi.experiments.store.schema import FlagRow

_NAME: Final = "loose calls"
MOST: Final = 1_000
"""Points of which somebody may say so."""


def load(session: Session) -> dict[str, bool]:
    """Load by point whether its calls are of the requests that they run within."""
    row = session.get(FlagRow, _NAME)
    return {} if row is None else dict(row.value["said"])


def say(change: Change, point: str, belong: bool | None) -> dict[str, bool]:
    """Put on record what somebody says of a point; None: nothing any more. Returns all of it."""
    said = load(change.session)
    before = said.pop(point, None)
    if belong is not None and len(said) < MOST:
        said[point] = belong
    change.session.merge(FlagRow(name=_NAME, value={"said": said}))
    if before != belong:
        change.audit(_WORDS[belong], point[:64], point if len(point) > 64 else "")
    return said


_WORDS: Final = {
    True: "loose calls: of the requests around them",
    False: "loose calls: of no request",
    None: "loose calls: nobody says",
}
