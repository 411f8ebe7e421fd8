"""Rows are put in the place of others that were many times as large.

SQLite never joins pages that an update leaves almost empty, so a table would stay as large as it
ever was; it does where rows are deleted. PostgreSQL writes each row anew by itself. What does not
change is never read by us: it may be large, and parsing it would take longer than all the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    MetaData,
    Table,
    case,
    delete,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy.orm import InstrumentedAttribute, Session


def put_anew(
    session: Session, key: InstrumentedAttribute[Any], changed: Mapping[Any, Mapping[str, Any]]
) -> None:
    """Put rows with what has changed in the place of those with these keys: the same columns of
    each. Nothing happens to keys that are not there."""
    if not changed:
        return
    table, mine = key.class_.__table__, key.in_(changed)
    values = {
        name: _value(table.c[name], key, {each: new[name] for each, new in changed.items()})
        for name in next(iter(changed.values()))
    }
    if session.get_bind().dialect.name == "sqlite":
        _moved(session, table, mine, values)
    else:
        session.execute(update(table).where(mine).values(values))


def _value(
    column: Column[Any], key: InstrumentedAttribute[Any], by_key: Mapping[Any, Any]
) -> ColumnElement[Any]:
    first, *others = by_key.values()
    if all(each == first for each in others):
        return literal(first, type_=column.type)
    written = {each: literal(value, type_=column.type) for each, value in by_key.items()}
    return case(written, value=key)


def _moved(
    session: Session,
    table: Table,
    mine: ColumnElement[bool],
    values: Mapping[str, ColumnElement[Any]],
) -> None:
    """Delete rows and insert them again, by way of a table that is gone afterwards."""
    names = [each.name for each in table.columns]
    aside = Table(
        "put_anew",
        MetaData(),
        *(Column(each.name, each.type) for each in table.columns),
        prefixes=["TEMPORARY"],
    )
    aside.create(session.connection())
    rows = select(*(values.get(name, table.c[name]) for name in names)).where(mine)
    session.execute(insert(aside).from_select(names, rows))
    session.execute(delete(table).where(mine))
    session.execute(insert(table).from_select(names, select(aside)))
    aside.drop(session.connection())
