from __future__ import annotations

import ast
import logging
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict
from sqlalchemy import select, text
from sqlalchemy.exc import InternalError, OperationalError
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from ldfi import errors
from ldfi.experiments.api import problems
from ldfi.experiments.api.problems import KINDS, Problem
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import AuditRow
from tests.kit.service import application, client_of, problem


class Document(BaseModel):
    model_config = ConfigDict(extra="forbid")
    n: int


ERRORS = {
    "not-found": errors.NotFound("x"),
    "halted": errors.Halted("x"),
    "conflict": errors.Conflict("half a \ud83d"),
    "invalid": errors.InvalidCalendar("x"),
    "prometheus": errors.PrometheusError("x"),
    "not-delivered": errors.NotDelivered("x"),
    "forbidden": Problem(403, "forbidden", "x"),
    "unavailable": OperationalError("SELECT secret", {}, Exception("secret")),
    "internal": RuntimeError("secret"),
    "internal, of the database": InternalError("SELECT secret", {}, Exception("secret")),
    "too-large": HTTPException(413),
}


def failing() -> APIRouter:
    router = APIRouter()

    @router.post("/document")
    def document(_document: Document) -> None: ...

    @router.get("/raise/{kind}")
    def fail(kind: str) -> None:
        raise ERRORS[kind]

    @router.get("/half")
    def half() -> StreamingResponse:
        def parts() -> Iterator[str]:
            yield "half"
            raise RuntimeError("secret")

        return StreamingResponse(parts())

    @router.get("/teapot")
    def teapot() -> Response:
        raise HTTPException(418, "short and stout", {"X-Pot": "tea"})

    return router


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    database = Database(f"sqlite:///{tmp_path / 'x.sqlite3'}")
    with client_of(application(database, [failing()])) as running:
        yield running
    database.close()


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_has_its_type(client: httpx.Client, kind: str) -> None:
    answer = client.get(f"/raise/{kind}")

    assert problem(answer) == kind.partition(",")[0]
    assert answer.status_code == KINDS[problem(answer)].status


def test_what_the_framework_refuses_is_a_problem_too(client: httpx.Client) -> None:
    assert problem(client.get("/nowhere")) == "no-such-route"
    wrong = client.get("/document")
    assert problem(wrong) == "method-not-allowed"
    assert wrong.headers["allow"] == "POST"
    for body in (b"{", b"", b"[]", b'{"n": "x"}', b"\xff", b"null", b"[" * 100_000):
        headers = {"content-type": "application/json"}
        answer = client.post("/document", content=body, headers=headers)
        assert problem(answer) in {"invalid", "bad-request"}


def test_a_status_without_a_type_keeps_its_headers(client: httpx.Client) -> None:
    answer = client.get("/teapot")

    assert answer.json() == {"type": "about:blank", "status": 418, "title": "short and stout"}
    assert answer.headers["x-pot"] == "tea"


def test_a_message_may_hold_what_cannot_be_encoded(client: httpx.Client) -> None:
    answer = client.get("/raise/conflict")

    assert problem(answer) == "conflict"
    assert answer.json()["detail"] == "half a \ud83d"


@pytest.mark.parametrize("kind", ["internal", "unavailable"])
def test_a_failure_of_ours_leaks_nothing_but_can_be_found_in_the_log(
    client: httpx.Client, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    with caplog.at_level(logging.ERROR, logger="ldfi.experiments.api.problems"):
        answer = client.get(f"/raise/{kind}")

    assert "secret" not in answer.text
    (record,) = [r for r in caplog.records if r.name == "ldfi.experiments.api.problems"]
    assert answer.json()["incident"] in record.getMessage()
    assert record.exc_info is not None


def test_a_failure_leaves_the_connection_as_it_was(client: httpx.Client) -> None:
    for _ in range(50):
        assert problem(client.get("/raise/internal")) == "internal"
    assert problem(client.get("/nowhere")) == "no-such-route"


def test_an_answer_that_fails_half_way_is_cut_short(client: httpx.Client) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        client.get("/half")


@pytest.mark.servers
@pytest.mark.parametrize("cut", ["idle", "terminated"])
def test_a_transaction_cut_off_by_postgresql_is_unavailable(postgresql_url: str, cut: str) -> None:
    """As happens to a process that was stopped in the middle of one."""
    database = Database(postgresql_url)
    router = APIRouter()

    @router.get("/stopped")
    def stopped() -> None:
        with database.change(1.0) as change, database.engine.connect() as other:
            change.session.execute(text("SET LOCAL idle_in_transaction_session_timeout = 50"))
            process = change.session.scalar(text("SELECT pg_backend_pid()"))
            if cut == "terminated":
                other.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": process})
            there = text("SELECT count(*) FROM pg_stat_activity WHERE pid = :pid")
            ends = time.monotonic() + 30
            while other.scalar(there, {"pid": process}):
                other.rollback()  # it is of one moment what a transaction sees
                assert time.monotonic() < ends, "PostgreSQL did not cut it off"
            change.audit("never")

    @router.get("/well")
    def well() -> int:
        with database.read() as session:
            return len(session.scalars(select(AuditRow)).all())

    with client_of(application(database, [router])) as client:
        assert problem(client.get("/stopped")) == "unavailable"
        assert client.get("/well").json() == 0
    database.close()


def test_a_problem_that_is_not_in_the_table_cannot_be_raised() -> None:
    with pytest.raises(AssertionError, match="on-fire"):
        Problem(500, "on-fire", "x")
    with pytest.raises(AssertionError, match="forbidden"):
        Problem(500, "forbidden", "x")


def test_every_problem_that_the_code_raises_is_in_the_table() -> None:
    raised = set()
    for file in Path(problems.__file__).parent.glob("*.py"):
        for each in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match each:
                case ast.Call(ast.Name("Problem"), [ast.Constant(status), ast.Constant(name), *_]):
                    raised.add((status, name))

    assert len(raised) > 10
    assert raised <= {(kind.status, name) for name, kind in KINDS.items()}
