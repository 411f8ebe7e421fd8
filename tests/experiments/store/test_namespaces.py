"""Namespaces on record, and the stores they have for themselves."""

from __future__ import annotations

import pytest
from sqlalchemy import inspect, select

from ldfi.errors import Conflict, Invalid
from ldfi.experiments.domain.settings import Limits
from ldfi.experiments.store import halts, namespaces, tokens
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.namespaces import check_name, put
from ldfi.experiments.store.schema import AuditRow, Base, NamespaceRow


def made(database: Database, url: str, name: str) -> Database:
    with database.change(1.0, "ann") as change:
        put(change, name)
    return namespaces.opened(url, database, name)


def test_a_store_has_all_tables_and_nothing_else(database: Database, database_url: str) -> None:
    stores = {name: made(database, database_url, name) for name in ("team-a", "team-b")}
    stores["default"] = database
    try:
        for name, store in stores.items():
            with store.change(2.0, name) as change:
                halts.set_halted(change, f"of {name}")
        for name, store in stores.items():
            with store.read() as session:
                assert halts.halted(session) == f"of {name}"
                who = set(session.scalars(select(AuditRow.who))) - {"ann"}
            assert who == {name}
            assert set(inspect(store.engine).get_table_names()) >= set(Base.metadata.tables)
    finally:
        for name in ("team-a", "team-b"):
            stores[name].close()
    # And it is all there when it is opened again
    again = namespaces.opened(database_url, database, "team-a")
    with again.read() as session:
        assert halts.halted(session) == "of team-a"
        assert namespaces.listed(session) == []
    again.close()


def test_limits_are_those_of_all_where_it_has_none_of_its_own(database: Database) -> None:
    with database.change(1.0, "ann") as change:
        put(change, "checkout", members_per_day=50)
        put(change, "checkout", members_per_day=50)
    of_all = Limits(protected_points=("a>*",))

    with database.read() as session:
        (found,) = namespaces.listed(session)
        said = list(session.scalars(select(AuditRow.what).order_by(AuditRow.id)))
    assert (found.name, found.created_by) == ("checkout", "ann")
    assert found.limits(of_all) == Limits(members_per_day=50, protected_points=("a>*",))
    assert said == ["namespace made", "namespace limited"]
    with database.change(2.0, "ben") as change:
        assert put(change, "checkout", max_concurrent=1).limits(of_all).members_per_day == 5_000


@pytest.mark.parametrize(
    "name",
    ["", "default", "lock", "A", "1a", "a-", "a--b", "a_b", "a.b", "a/../b", "a~", "é", "a" * 31],
)
def test_a_name_is_part_of_a_token_a_file_and_a_schema(name: str) -> None:
    with pytest.raises(Invalid):
        check_name(name)


def test_there_are_not_too_many(database: Database) -> None:
    with database.change(1.0) as change:
        for number in range(namespaces.MOST):
            change.session.add(NamespaceRow(name=f"n{number}", created_by="ann", created_at=1.0))
    with pytest.raises(Conflict), database.change(2.0) as change:
        put(change, "one-more")


def test_a_token_is_known_in_its_namespace_only(database: Database, database_url: str) -> None:
    store = made(database, database_url, "team-a")
    with store.change(2.0, "kim") as change:
        _, token = tokens.create(change, "lee", "viewer")
    with database.change(2.0, "kim") as change:
        _, plain = tokens.create(change, "lee", "viewer")

    assert tokens.namespace_in(token) == "team-a"
    assert tokens.namespace_in(plain) is None
    for each, here, there in ((token, store, database), (plain, database, store)):
        with here.read() as session, there.read() as other:
            assert tokens.holder(session, tokens.digest(each), 3.0) is not None
            assert tokens.holder(other, tokens.digest(each), 3.0) is None
    store.close()
