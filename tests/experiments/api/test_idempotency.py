from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Request, Response
from sqlalchemy import select, update
from starlette.responses import StreamingResponse

from ldfi.errors import Conflict
from ldfi.experiments.api.auth import Operator
from ldfi.experiments.api.idempotency import FORGET_EVERY, REPLAYED, IdempotentRoute
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.idempotency import ABANDONED, KEPT
from ldfi.experiments.store.schema import AuditRow, IdempotencyRow
from tests.kit.service import GIVEN, application, bearer, client_of, problem


class Gate:
    """Holds requests up until it is opened."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()
        self.open.set()


GATE = Gate()


def changing() -> APIRouter:
    """Routes that count, in the audit, how often they were really done."""
    router = APIRouter(route_class=IdempotentRoute)

    def do(request: Request, who: str) -> int:
        database: Database = request.app.state.database
        with database.change(time.time(), who) as change:
            database.lock(change)  # one at a time, or two would count the same
            change.audit("done")
            change.session.flush()
            return len(change.session.scalars(select(AuditRow)).all())

    @router.post("/do", status_code=201)
    def work(document: dict[str, int], request: Request, caller: Operator) -> Response:
        GATE.entered.set()
        assert GATE.open.wait(10)
        if document.get("fail"):
            raise Conflict("not now")
        if document.get("break"):
            raise RuntimeError("broken")
        number = do(request, caller.name)
        headers = {"Location": f"/done/{number}", "X-Other": "x"}
        return Response(f'{{"number":{number}}}', 201, headers, media_type="application/json")

    @router.get("/do")
    def look(caller: Operator) -> str:
        return caller.name

    @router.post("/stream")
    def stream(request: Request, caller: Operator) -> StreamingResponse:
        return StreamingResponse(iter([str(do(request, caller.name))]))

    return router


@pytest.fixture
def app(database: Database) -> FastAPI:
    return application(database, [changing()])


def post(client: httpx.Client, key: str, **document: int) -> httpx.Response:
    return client.post("/do", json=document, headers={"Idempotency-Key": key})


def done(database: Database) -> int:
    with database.read() as session:
        return len(session.scalars(select(AuditRow)).all())


def aged(database: Database, seconds: float) -> None:
    """Let time pass for what is kept."""
    with database.change(time.time()) as change:
        change.session.execute(update(IdempotencyRow).values(at=IdempotencyRow.at - seconds))


def test_a_repetition_gets_the_same_answer(client: httpx.Client, database: Database) -> None:
    first, second = post(client, "k", n=1), post(client, "k", n=1)

    assert (first.status_code, first.content) == (201, b'{"number":1}')
    assert (second.status_code, second.content) == (201, first.content)
    assert second.headers["location"] == first.headers["location"] == "/done/1"
    assert second.headers["content-type"] == first.headers["content-type"]
    assert REPLAYED not in first.headers
    assert second.headers[REPLAYED] == "true"
    assert done(database) == 1


def test_quoted_and_bare_keys_are_the_same(client: httpx.Client, database: Database) -> None:
    post(client, '"8e03978e-40d5-43dd-bc93-6894a57f9324"', n=1)
    post(client, "8e03978e-40d5-43dd-bc93-6894a57f9324", n=1)

    assert done(database) == 1


def test_without_a_key_all_is_done_each_time(client: httpx.Client, database: Database) -> None:
    for _ in range(2):
        assert client.post("/do", json={}).status_code == 201
    assert done(database) == 2


def test_the_answer_survives_a_restart(app: FastAPI, database: Database, database_url: str) -> None:
    with client_of(app, GIVEN["operator"]) as client:
        first = post(client, "k", n=1)
    again = Database(database_url)
    with client_of(application(again, [changing()]), GIVEN["operator"]) as client:
        second = post(client, "k", n=1)
    again.close()

    assert second.content == first.content
    assert done(database) == 1


def test_another_body_under_one_key_is_refused(client: httpx.Client, database: Database) -> None:
    post(client, "k", n=1)

    assert problem(post(client, "k", n=2)) == "idempotency-key-reused"
    assert done(database) == 1


def test_keys_of_callers_are_independent(client: httpx.Client, database: Database) -> None:
    post(client, "k", n=1)
    headers = {"Idempotency-Key": "k", **bearer(GIVEN["admin"])}
    second = client.post("/do", json={"n": 1}, headers=headers)

    assert second.json() == {"number": 2}


def test_who_may_not_gets_nothing_replayed(client: httpx.Client, database: Database) -> None:
    post(client, "k", n=1)
    for token, kind in (("nobody-knows-this-one", "unauthorized"), (GIVEN["viewer"], "forbidden")):
        headers = {"Idempotency-Key": "k", **bearer(token)}
        assert problem(client.post("/do", json={"n": 1}, headers=headers)) == kind
    with database.read() as session:
        assert len(session.scalars(select(IdempotencyRow)).all()) == 1


def test_a_second_at_the_same_time_is_told_so(client: httpx.Client, database: Database) -> None:
    GATE.open.clear()
    GATE.entered.clear()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(post, client, "k", n=1)
        assert GATE.entered.wait(10)
        second = post(client, "k", n=1)
        other = post(client, "k", n=2)
        GATE.open.set()

        assert problem(second) == "idempotency-in-progress"
        assert second.headers["retry-after"] == "1"
        assert problem(other) == "idempotency-key-reused"
        assert first.result().status_code == 201
    assert post(client, "k", n=1).headers[REPLAYED] == "true"
    assert done(database) == 1


def test_many_at_once_are_done_once(client: httpx.Client, database: Database) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: post(client, "k", n=1), range(24)))

    assert {answer.status_code for answer in answers} <= {201, 409}
    assert {answer.content for answer in answers if answer.is_success} == {b'{"number":1}'}
    assert done(database) == 1


@pytest.mark.parametrize(("fault", "kind"), [("fail", "conflict"), ("break", "internal")])
def test_what_failed_may_be_tried_again(client: httpx.Client, fault: str, kind: str) -> None:
    for _ in range(2):
        answer = post(client, "k", **{fault: 1})
        assert problem(answer) == kind
        assert REPLAYED not in answer.headers


def test_an_invalid_request_uses_up_no_key(client: httpx.Client, database: Database) -> None:
    headers = {"Idempotency-Key": "k", "content-type": "application/json"}
    assert problem(client.post("/do", content=b"{", headers=headers)) == "invalid"
    assert post(client, "k", n=1).status_code == 201


def test_a_crash_locks_the_key_for_a_minute(client: httpx.Client, database: Database) -> None:
    # Given a request whose process died before it answered
    post(client, "k", n=1)
    with database.change(time.time()) as change:
        change.session.execute(update(IdempotencyRow).values(status=None, answer=None))
    # Then it counts as running for a while, and is done again after that
    assert problem(post(client, "k", n=1)) == "idempotency-in-progress"
    aged(database, ABANDONED)
    assert problem(post(client, "k", n=2)) == "idempotency-key-reused"
    assert post(client, "k", n=1).json() == {"number": 2}
    assert post(client, "k", n=1).json() == {"number": 2}


def test_who_was_taken_for_dead_changes_nothing(client: httpx.Client, database: Database) -> None:
    GATE.open.clear()
    GATE.entered.clear()
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(post, client, "k", n=1)
        assert GATE.entered.wait(10)
        aged(database, ABANDONED)
        GATE.entered.clear()
        takeover = pool.submit(post, client, "k", n=1)
        assert GATE.entered.wait(10)
        GATE.open.set()
        answers = {slow.result().content, takeover.result().content}

    assert answers == {b'{"number":1}', b'{"number":2}'}
    assert post(client, "k", n=1).content == takeover.result().content


def test_after_a_day_a_key_is_new_and_old_ones_are_forgotten(
    app: FastAPI, client: httpx.Client, database: Database
) -> None:
    post(client, "k", n=1)
    post(client, "other", n=1)
    aged(database, KEPT)
    assert post(client, "k", n=2).json() == {"number": 3}

    app.state.idempotency_forgotten_at -= FORGET_EVERY
    post(client, "k", n=2)
    with database.read() as session:
        assert [row.key for row in session.scalars(select(IdempotencyRow))] == ["k"]


def test_keys_that_are_none_are_refused(client: httpx.Client) -> None:
    for key in ("", '""', "a b", "é", "x" * 129, '"x', "a\tb"):
        headers = {b"Idempotency-Key": key.encode("latin-1")}
        answer = client.post("/do", json={}, headers=headers)
        assert problem(answer) == "invalid-idempotency-key", key


def test_reading_needs_no_key_and_takes_none(client: httpx.Client, database: Database) -> None:
    assert client.get("/do", headers={"Idempotency-Key": "k"}).json() == "operator"
    with database.read() as session:
        assert session.scalars(select(IdempotencyRow)).all() == []


def test_a_stream_is_not_kept(client: httpx.Client) -> None:
    headers = {"Idempotency-Key": "k"}
    assert [client.post("/stream", headers=headers).text for _ in range(2)] == ["1", "2"]
