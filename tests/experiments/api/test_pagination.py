from __future__ import annotations

import base64
import json
from contextlib import suppress

import pytest
from fastapi import APIRouter, FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select

from ldfi.experiments.api.pagination import Cursor, Limit, Links, Page, page
from ldfi.experiments.api.problems import Problem
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import AuditRow, TokenRow
from tests.kit.service import application, client_of, problem


def lists(database: Database) -> APIRouter:
    router = APIRouter()

    @router.get("/audit")
    def audit(
        links: Links, cursor: Cursor = None, limit: Limit = 50, who: str | None = None
    ) -> Page[int]:
        query = select(AuditRow) if who is None else select(AuditRow).where(AuditRow.who == who)
        with database.read() as session:
            rows = page(session, query, AuditRow.at, AuditRow.id, cursor, limit)
            return rows.answer(links, lambda row: row.id)

    @router.get("/tokens")
    def tokens(links: Links, cursor: Cursor = None, limit: Limit = 50) -> Page[str]:
        with database.read() as session:
            query, by, key = select(TokenRow), TokenRow.created_at, TokenRow.id
            rows = page(session, query, by, key, cursor, limit, newest_first=False)
            return rows.answer(links, lambda row: row.id)

    return router


@pytest.fixture
def app(database: Database) -> FastAPI:
    return application(database, [lists(database)])


def add(database: Database, times: list[float], who: str = "kim") -> list[int]:
    """Audit rows at these times; their ids, newest first."""
    with database.change(0.0) as change:
        change.session.execute(delete(AuditRow))
        rows = [AuditRow(at=at, who=who, what="x") for at in times]
        change.session.add_all(rows)
        change.session.flush()
        return [row.id for row in sorted(rows, key=lambda row: (row.at, row.id), reverse=True)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from([0.1, 0.2, 1e9 + 1 / 3, 1.7e9]), max_size=25),
    st.integers(1, 7),
    st.booleans(),
)
def test_the_pages_together_are_the_list(
    database: Database, times: list[float], limit: int, newest_first: bool
) -> None:
    expected = add(database, times)
    seen, cursor = [], None
    while True:
        with database.read() as session:
            query, by, key = select(AuditRow), AuditRow.at, AuditRow.id
            rows = page(session, query, by, key, cursor, limit, newest_first=newest_first)
            seen += [row.id for row in rows.items]
        assert len(rows.items) <= limit
        if rows.next is None:
            break
        cursor = rows.next

    assert seen == (expected if newest_first else expected[::-1])


def test_links_lead_through_the_list_and_keep_its_filters(database: Database, app: FastAPI) -> None:
    add(database, [1.0, 2.0], "eve")
    with database.change(0.0) as change:
        change.session.add_all([AuditRow(at=float(n), who="kim & co", what="x") for n in range(5)])
    with client_of(app) as client:
        answer = client.get("/audit", params={"who": "kim & co", "limit": 2})
        seen = [answer.json()["items"]]
        while "next" in answer.links:
            answer = client.get(answer.links["next"]["url"])
            seen.append(answer.json()["items"])

    assert [len(items) for items in seen] == [2, 2, 1]
    assert answer.json()["cursor"] is None


def test_what_is_added_meanwhile_moves_nothing(database: Database, app: FastAPI) -> None:
    expected = add(database, [1.0, 2.0, 3.0, 4.0])
    with client_of(app) as client:
        first = client.get("/audit?limit=2").json()
        with database.change(0.0) as change:
            change.session.add(AuditRow(at=9.0, who="kim", what="new"))
        second = client.get("/audit", params={"limit": 2, "cursor": first["cursor"]}).json()

    assert first["items"] + second["items"] == expected


def encoded(place: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


BAD = [
    *("", "x", "%", "\0", "ab=c", "é", "a" * 1025),
    *map(encoded, [None, 1, {}, [], "AuditRow.at", ["AuditRow.at"], ["AuditRow.at", 1.0]]),
    *map(encoded, [["AuditRow.at", 1, 1], ["AuditRow.at", 1.0, 1.0], ["AuditRow.at", 1.0, True]]),
    *map(encoded, [["AuditRow.at", 1.0, 2**63], ["AuditRow.at", float("nan"), 1]]),
    *map(encoded, [["AuditRow.at", float("inf"), 1], ["AuditRow.at", 1.0, "1"]]),
    *map(encoded, [["AuditRow.at", 1.0, 1, 1], ["TokenRow.created_at", 1.0, 1]]),
]


def test_what_is_no_cursor_or_no_limit_is_said_to_be_none(app: FastAPI) -> None:
    with client_of(app) as client:

        def refused(path: str, **query: str) -> str:
            answer = client.get(path, params=query)
            assert answer.status_code == 422
            return problem(answer)

        for cursor in BAD:
            assert refused("/audit", cursor=cursor) in {"invalid-cursor", "invalid"}, cursor
        # Nor one whose id no database takes
        for key in ("\0", "\ud800", 5, None):
            cursor = encoded(["TokenRow.created_at", 1.0, key])
            assert refused("/tokens", cursor=cursor) == "invalid-cursor"
        assert client.get(f"/tokens?cursor={encoded(['TokenRow.created_at', 1.0, 'x'])}").is_success
        for limit in ("0", "201", "-1", "x", ""):
            assert refused("/audit", limit=limit) == "invalid", limit


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
    ),
    st.integers() | st.floats() | st.text(),
)
def test_no_cursor_breaks_anything(database: Database, time: object, key: object) -> None:
    with database.read() as session:
        for read in (
            lambda: page(
                *(session, select(AuditRow), AuditRow.at, AuditRow.id),
                encoded(["AuditRow.at", time, key]),
            ),
            lambda: page(
                *(session, select(TokenRow), TokenRow.created_at, TokenRow.id),
                encoded(["TokenRow.created_at", time, key]),
            ),
        ):
            with suppress(Problem):
                read()
