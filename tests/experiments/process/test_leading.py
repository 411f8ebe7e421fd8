"""Several processes, one leader: who answers what, and what happens when one is killed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from sqlalchemy.engine import make_url

from ldfi.experiments.process.advisory_lock import KEY
from ldfi.experiments.store import leaders, switches
from ldfi.experiments.store.database import Database
from tests.experiments.applications import GIVEN, bearer, problem
from tests.experiments.members import Member, until

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def members(postgresql_url: str, tmp_path: Path) -> Iterator[dict[str, Member]]:
    options = {"LDFI_DATABASE_URL": postgresql_url}
    roles = {"api": "api", "first": "scheduler", "second": "scheduler"}
    members = {name: Member(role, tmp_path, options) for name, role in roles.items()}
    yield members
    for member in members.values():
        member.kill()


def conninfo(url: str) -> str:
    """As psycopg wants it."""
    parsed = make_url(url)
    return f"host={parsed.query['host']} user={parsed.username} dbname={parsed.database}"


def leading(members: dict[str, Member]) -> Member | None:
    both = (members["first"], members["second"])
    return next((each for each in both if each.state() == "ready"), None)


def test_one_leads_the_others_pass_on_and_another_takes_over(
    members: dict[str, Member], postgresql_url: str
) -> None:
    api, first, second = members["api"], members["first"], members["second"]
    # Given no leader, any process halts all the same, and whoever needs an engine is told to wait
    api.start()
    until(lambda: api.state() == "standby")
    assert api.ask("POST", "/api/v1/halt", json={"reason": "nobody leads"}).json() == {
        "halted": "nobody leads"
    }
    refused = api.ask("GET", "/api/v1/status")
    assert problem(refused) == "no-leader"
    assert refused.headers["retry-after"] == "1"
    assert api.ask("GET", "/api/v1/audit").json()["items"][0]["what"] == "halt"
    assert api.ask("POST", "/api/v1/tokens", json={}).status_code == 403  # roles are looked at here

    # When two want to lead, one does, and everybody answers alike
    first.start()
    second.start()
    until(lambda: {first.state(), second.state()} == {"ready", "standby"})
    for member in members.values():
        answer = member.ask("GET", "/api/v1/status")
        assert answer.json()["halted"] == "nobody leads"
    assert api.ask("POST", "/api/v1/resume").json() == {"halted": None}
    asked = {"edge": "e1", "wait": 0}
    lease = api.ask("GET", "/api/v1/edge/rules", "edge", params=asked).json()
    assert lease["rules"] == []
    old = leading(members)
    assert old is not None

    assert "ldfi_leads 1.0" in old.metrics()
    assert "ldfi_tick_age_seconds" in old.metrics()
    assert "ldfi_leads 0.0" in api.metrics()
    assert "ldfi_database_up 1.0" in api.metrics()

    # An edge that waits through another process waits at the leader
    with httpx.Client(headers=bearer(GIVEN["edge"]), timeout=20, trust_env=False) as edge:
        began = time.monotonic()
        wait: dict[str, Any] = {**asked, "version": lease["version"], "wait": 1}
        again = edge.get(f"{api.url}/api/v1/edge/rules", params=wait).json()
        assert again["version"] == lease["version"]
        assert time.monotonic() - began > 0.9

    # When the leader is killed, the other leads within ten seconds, and all go on
    old.kill()
    took = until(lambda: leading(members) is not None)
    assert took < 10
    until(lambda: api.ask("GET", "/api/v1/status").is_success, 5)
    new = leading(members)
    assert new is not None
    taken = api.ask("GET", "/api/v1/edge/rules", "edge", params=asked).json()
    assert taken["version"].partition("-")[0] != lease["version"].partition("-")[0]

    # Events come through another process as they happen
    headers = bearer(GIVEN["viewer"])
    events = httpx.stream(
        "GET", f"{api.url}/api/v1/events", headers=headers, timeout=20, trust_env=False
    )
    with events as stream:
        lines = stream.iter_lines()
        assert "event: open" in {next(lines), next(lines)}
        api.ask("POST", "/api/v1/resume")
        until(lambda: '"what":"resume"' in next(lines))

    # When a leader has stood still, and wakes up when another one leads, it steps down
    old.start()
    until(lambda: old.state() == "standby")
    new.freeze()
    with psycopg.connect(conninfo(postgresql_url), autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' "
            "AND granted AND objid = %s",
            (KEY,),
        )
    until(lambda: old.state() == "ready", 10)
    new.thaw()
    until(lambda: new.state() == "standby", 10)
    assert "does not lead any more" in new.log
    assert new.ask("GET", "/api/v1/status").is_success  # it passes on
    new = old

    # A halt anywhere reaches the leader within seconds
    api.ask("POST", "/api/v1/halt", json={"reason": "now somebody does"})
    until(lambda: new.ask("GET", "/api/v1/status").json()["halted"] is not None, 5)

    # When the leader leaves politely, nobody takes it for the leader any more
    for each in (first, second):
        if each is not new:
            each.kill()
    assert new.stop() == 0
    database = Database(postgresql_url)
    try:
        with database.read() as session:
            assert leaders.current(session) == leaders.Office(3, "")
            assert switches.halted(session) == "now somebody does"
    finally:
        database.close()
    assert problem(api.ask("GET", "/api/v1/status")) == "no-leader"
    assert api.state() == "standby"
    assert api.stop() == 0
