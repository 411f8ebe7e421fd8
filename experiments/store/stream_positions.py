"""How far streams have been taken in, on record with what was learned from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from ldfi.experiments.store.database import Change
from ldfi.experiments.store.schema import PositionRow


class Position(NamedTuple):
    """Offsets of one partition. See :class:`ldfi.experiments.store.schema.PositionRow`."""

    next_offset: int
    read_from: int


def load(session: Session, topic: str) -> dict[int, Position]:
    """Load how far each partition is taken in; those never looked at are missing."""
    rows = session.scalars(select(PositionRow).where(PositionRow.topic == topic))
    return {row.partition: Position(row.next_offset, row.read_from) for row in rows}


def save(change: Change, topic: str, positions: Mapping[int, Position]) -> None:
    """Keep how far partitions are taken in."""
    for partition, at in positions.items():
        change.session.merge(PositionRow(topic=topic, partition=partition, **at._asdict()))
