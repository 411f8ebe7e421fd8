"""Rows are put in the place of others that were many times as large.

SQLite never joins pages that an update leaves almost empty, so a table would stay as large as it
ever was; it does where rows are deleted. PostgreSQL writes each row anew by itself. What does not
change is never read by us: it may be large, and parsing it would take longer than all the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    MetaData,
    Table,
    bindparam,
    delete,
    insert,
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
    if session.get_bind().dialect.name == "sqlite":
        with _aside(session, table, mine) as aside:
            _change(session, aside, aside.c[key.key], changed)
    else:
        _change(session, table, table.c[key.key], changed)


def _change(
    session: Session, table: Table, key: Column[Any], changed: Mapping[Any, Mapping[str, Any]]
) -> None:
    """Change rows by their keys: at once where all become the same."""
    first, *others = changed.values()
    if all(each == first for each in others):
        session.execute(update(table).where(key.in_(changed)).values(first))
        return
    new = {name: bindparam(f"new_{name}", type_=table.c[name].type) for name in first}
    rows = [
        {"its": each, **{f"new_{name}": value for name, value in values.items()}}
        for each, values in changed.items()
    ]
    session.execute(update(table).where(key == bindparam("its")).values(new), rows)


@contextmanager
def _aside(session: Session, table: Table, mine: ColumnElement[bool]) -> Iterator[Table]:
    """Take rows out of a table meanwhile: into one that is gone afterwards."""
    names = [each.name for each in table.columns]
    columns = [Column(each.name, each.type, primary_key=each.primary_key) for each in table.columns]
    aside = Table("put_anew", MetaData(), *columns, prefixes=["TEMPORARY"])
    aside.create(session.connection())
    rows = select(*(table.c[name] for name in names)).where(mine)
    session.execute(insert(aside).from_select(names, rows))
    session.execute(delete(table).where(mine))
    yield aside
    session.execute(insert(table).from_select(names, select(aside)))
    aside.drop(session.connection())
