"""How many runs there are of each class version, as leaves of a Merkle tree that is signed.

A run's end changes one leaf and the nodes above it, so it costs no more after years than on the
first day. The whole list is only read by whoever asks for the head.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import func, select, tuple_
from sqlalchemy.orm import Session

from ldfi.checker import merkle
from ldfi.checker.head import ClassVersion, count_leaf
from ldfi.experiments.store.schema import CountNodeRow, RunCountRow


def counted_runs(session: Session) -> dict[ClassVersion, int]:
    """Read all counts, in the order in which their class versions came."""
    query = select(RunCountRow.request_class, RunCountRow.version, RunCountRow.runs)
    rows = session.execute(query.order_by(RunCountRow.place))
    return {(name, version): runs for name, version, runs in rows}


def count_one(session: Session, class_version: ClassVersion) -> tuple[int, bytes]:
    """Count one more run of a class version; return which one it is, and the root of the tree.

    The caller holds the lock on the head.
    """
    name, version = class_version
    row, size = _row(session, class_version), _size(session)
    if row is None:
        row = RunCountRow(place=size, request_class=name, version=version, runs=0)
        session.add(row)
        size += 1
    row.runs += 1
    return row.runs, _changed(session, row.place, size, count_leaf(class_version, row.runs))


def changed(session: Session, class_version: ClassVersion, signed: bytes | None) -> str:
    """Return a message that what a count is about to be joined with is not what was ``signed``;
    empty where it is, or nothing was. As in :func:`count_one`, a dozen nodes are looked at, not
    all of them."""
    if signed is None:
        return ""
    row, size = _row(session, class_version), _size(session)
    place = size if row is None else row.place
    rows = _nodes(session, place, max(size, place + 1))

    def node(level: int, index: int) -> bytes:
        return bytes.fromhex(rows[level, index].hashed)

    try:
        if row is None:
            found = merkle.root(size, node)
        else:
            leaf = count_leaf(class_version, row.runs)
            found = merkle.replaced(place, size, leaf, node)[-1][2]
    except (KeyError, ValueError):
        found = b""
    same = found == signed
    return "" if same else "the counts of runs on record are not those that were signed"


def fill(session: Session, runs: Mapping[ClassVersion, int]) -> None:
    """Take over what a head from before lists."""
    made: dict[tuple[int, int], bytes] = {}

    def node(level: int, index: int) -> bytes:
        return made[level, index]

    for place, (class_version, many) in enumerate(runs.items()):
        name, version = class_version
        session.add(RunCountRow(place=place, request_class=name, version=version, runs=many))
        leaf = count_leaf(class_version, many)
        changed = merkle.replaced(place, place + 1, leaf, node)
        made.update({(level, index): hashed for level, index, hashed in changed})
    session.add_all(
        CountNodeRow(level=level, place=index, hashed=hashed.hex())
        for (level, index), hashed in made.items()
    )
    session.flush()


def _row(session: Session, class_version: ClassVersion) -> RunCountRow | None:
    name, version = class_version
    query = select(RunCountRow).where(
        RunCountRow.request_class == name, RunCountRow.version == version
    )
    return session.scalars(query).one_or_none()


def _size(session: Session) -> int:
    last = session.scalar(select(func.max(RunCountRow.place)))
    return 0 if last is None else last + 1


def _nodes(session: Session, place: int, size: int) -> dict[tuple[int, int], CountNodeRow]:
    """Read the nodes above a leaf, and those beside them."""
    way = [(level, place >> level) for level in range((size - 1).bit_length() + 1)]
    wanted = [*way, *((level, index ^ 1) for level, index in way)]
    query = select(CountNodeRow).where(tuple_(CountNodeRow.level, CountNodeRow.place).in_(wanted))
    return {(row.level, row.place): row for row in session.scalars(query)}


def _changed(session: Session, place: int, size: int, leaf: bytes) -> bytes:
    """Change a leaf and what is above it; return the root."""
    rows = _nodes(session, place, size)

    def node(level: int, index: int) -> bytes:
        return bytes.fromhex(rows[level, index].hashed)

    changed = merkle.replaced(place, size, leaf, node)
    for level, index, hashed in changed:
        row = rows.get((level, index))
        if row is None:
            session.add(CountNodeRow(level=level, place=index, hashed=hashed.hex()))
        else:
            row.hashed = hashed.hex()
    return changed[-1][2]
