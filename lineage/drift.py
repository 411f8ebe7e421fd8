"""Drift: what changes from one learning of the classes to the next.

Systems change under their classes: a release adds a call, a feature goes away, a new client asks
differently. Classes are learned anew from a fresh sample every day and compared with the ones
known. A class whose lineage changed gets a new version, and whatever was certified for the old
version has to be looked at again; a class without traffic expires; a new one is created.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from lineage.classes import RequestClass

Kind = Literal["created", "changed", "expired"]
Known = tuple[RequestClass, ...]

DAY = 86_400 * 10**9
EXPIRY = 7 * DAY
"""Nanoseconds without a request after which a class is forgotten."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. ``appeared`` and ``vanished`` are points of the expected support."""

    kind: Kind
    now: RequestClass
    appeared: frozenset[str] = frozenset()
    vanished: frozenset[str] = frozenset()


def relearn(
    known: Iterable[RequestClass],
    fresh: Iterable[RequestClass],
    now: int,
    expiry: int = EXPIRY,
) -> tuple[Known, tuple[Change, ...]]:
    """The classes that hold from now on, and what changed.

    ``fresh`` are the classes of a new sample; ``now`` is in nanoseconds since the epoch. A class
    that had too little traffic in the sample to say anything keeps its lineage.
    """
    before = {_identity(each): each for each in known}
    kept: list[RequestClass] = []
    changes: list[Change] = []
    for each in fresh:
        old = before.pop(_identity(each), None)
        if old is None:
            kept.append(each)
            changes.append(Change("created", each))
        elif each.sample == 0:
            kept.append(replace(old, shapes=each.shapes))
        elif (each.expected, bool(each.unfit)) == (old.expected, bool(old.unfit)):
            kept.append(replace(each, version=old.version))
        else:
            newer = replace(each, version=old.version + 1)
            kept.append(newer)
            gained, lost = each.expected - old.expected, old.expected - each.expected
            changes.append(Change("changed", newer, gained, lost))
    for old in before.values():
        if now - old.last_seen >= expiry:
            changes.append(Change("expired", old))
        else:
            kept.append(old)
    return tuple(kept), tuple(changes)


def _identity(each: RequestClass) -> tuple[str, str]:
    return (each.service, each.name)
