"""Rows are put in the place of others that were many times as large.

SQLite never joins pages that an update leaves almost empty, so a table would stay as large as it
ever was; it does where a row is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import InstrumentedAttribute, Session


def put_anew(
    session: Session, key: InstrumentedAttribute[Any], changed: Mapping[Any, Mapping[str, Any]]
) -> None:
    """Delete the rows with these keys and insert them with what has changed, by column, the same
    columns of each; nothing happens to keys that are not there."""
    table = key.class_.__table__
    mine = key.in_(changed)
    columns = {name for each in changed.values() for name in each}
    kept = [each for each in table.columns if each.key not in columns]
    rows = session.execute(select(*kept).where(mine).with_for_update()).mappings().all()
    session.execute(delete(table).where(mine))
    if rows:
        session.execute(insert(table), [{**row, **changed[row[key.key]]} for row in rows])
