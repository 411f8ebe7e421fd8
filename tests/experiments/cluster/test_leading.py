"""Several processes, one leader: who answers what, and what happens when one is killed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ldfi.experiments.cluster.advisory_lock import KEY
from ldfi.experiments.store import halts, leaders
from ldfi.experiments.store.database import Database
from tests.experiments.members import Member, until
from tests.experiments.store.test_migrations import psql
from tests.kit.service import GIVEN, bearer, problem

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture
def members(postgresql_url: str, tmp_path: Path) -> Iterator[dict[str, Member]]:
    options = {"LDFI_DATABASE_URL": postgresql_url}
    roles = {"api": "api", "first": "scheduler", "second": "scheduler"}
    members = {name: Member(role, tmp_path, options) for name, role in roles.items()}
    yield members
    for member in members.values():
        member.kill()


def leading(members: dict[str, Member]) -> Member | None:
    both = (members["first"], members["second"])
    return next((each for each in both if each.state() == "ready"), None)


def begun(members: dict[str, Member]) -> tuple[Member, Member, Member]:
    """All of them are up: the api, the one that leads, and the one that stands by."""
    for member in members.values():
        member.start()
    api, first, second = members.values()
    until(lambda: {first.state(), second.state()} == {"ready", "standby"})
    until(lambda: api.state() == "standby")
    until(lambda: api.ask("GET", "/api/v1/status").is_success)
    leader = leading(members)
    assert leader is not None
    return api, leader, second if leader is first else first


def version(member: Member) -> str:
    """The version of the rules, as an edge is told."""
    told = member.ask("GET", "/api/v1/edge/rules", "edge", params={"edge": "e1", "wait": 0}).json()
    return str(told["version"])


def on_record(url: str) -> tuple[leaders.Office | None, str | None]:
    """Who leads, and why everything is halted."""
    database = Database(url)
    try:
        with database.read() as session:
            return leaders.current(session), halts.halted(session)
    finally:
        database.close()


def test_without_a_leader_any_process_halts_and_the_rest_waits(members: dict[str, Member]) -> None:
    api, first, second = members.values()
    api.start()
    until(lambda: api.state() == "standby")

    halted = api.ask("POST", "/api/v1/halt", json={"reason": "nobody leads"})
    assert halted.json()["halted"] == "nobody leads"
    refused = api.ask("GET", "/api/v1/status")
    assert problem(refused) == "no-leader"
    assert refused.headers["retry-after"] == "1"
    assert api.ask("GET", "/api/v1/audit").json()["items"][0]["what"] == "halt"
    assert api.ask("POST", "/api/v1/tokens", json={}).status_code == 403  # roles are looked at here
    # And whoever leads later is halted, until somebody resumes
    first.start()
    second.start()
    until(lambda: {first.state(), second.state()} == {"ready", "standby"})
    for member in members.values():
        assert member.ask("GET", "/api/v1/status").json()["halted"] == "nobody leads"
    assert api.ask("POST", "/api/v1/resume").json() == {"halted": None}


def test_one_leads_and_the_others_pass_on(members: dict[str, Member]) -> None:
    api, leader, other = begun(members)

    for member in members.values():
        assert member.ask("GET", "/api/v1/status").json()["halted"] is None
    for member in (api, other):
        assert "ldfi_leads 0.0" in member.metrics()
        assert "ldfi_database_up 1.0" in member.metrics()
    assert "ldfi_leads 1.0" in leader.metrics()
    assert "ldfi_tick_age_seconds" in leader.metrics()
    # An edge that waits at another process waits there
    asked: dict[str, Any] = {"edge": "e1", "wait": 0}
    lease = api.ask("GET", "/api/v1/edge/rules", "edge", params=asked).json()
    assert lease["rules"] == []
    with httpx.Client(headers=bearer(GIVEN["edge"]), timeout=20, trust_env=False) as edge:
        began = time.monotonic()
        wait = {**asked, "version": lease["version"], "wait": 1}
        again = edge.get(f"{api.url}/api/v1/edge/rules", params=wait).json()
        assert again["version"] == lease["version"]
        assert time.monotonic() - began > 0.7  # three quarters of it, at least


def test_when_the_leader_is_killed_another_takes_over_and_all_go_on(
    members: dict[str, Member], postgresql_url: str
) -> None:
    api, old, new = begun(members)
    before = version(old)
    # When the leader is killed, the other leads within ten seconds, with rules of its own
    old.kill()
    took = until(lambda: leading(members) is not None)
    assert took < 10
    until(lambda: api.ask("GET", "/api/v1/status").is_success, 5)
    assert version(new).partition("-")[0] != before.partition("-")[0]
    assert version(api), "an edge may ask any process"
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
    # A halt anywhere reaches the leader within seconds
    api.ask("POST", "/api/v1/halt", json={"reason": "now somebody does"})
    until(lambda: new.ask("GET", "/api/v1/status").json()["halted"] is not None, 5)
    # When the leader leaves politely, nobody takes it for the leader any more
    assert new.stop() == 0
    assert on_record(postgresql_url) == (leaders.Office(2, ""), "now somebody does")
    assert problem(api.ask("GET", "/api/v1/status")) == "no-leader"
    assert api.state() == "standby"
    assert api.stop() == 0


def test_a_leader_that_stood_still_steps_down_when_another_leads(
    members: dict[str, Member], postgresql_url: str
) -> None:
    api, frozen, other = begun(members)
    # When a leader stands still, and its lock is taken from it
    frozen.freeze()
    with psql(postgresql_url) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' "
            "AND granted AND objid = %s",
            (KEY,),
        )
    until(lambda: other.state() == "ready", 10)
    # Then it wakes up, steps down, and passes on what it is asked
    frozen.thaw()
    until(lambda: frozen.state() == "standby", 10)
    assert "does not lead any more" in frozen.log
    assert frozen.ask("GET", "/api/v1/status").is_success
    # And what it is told reaches the one that leads
    frozen.ask("POST", "/api/v1/halt", json={"reason": "told the wrong one"})
    until(lambda: other.ask("GET", "/api/v1/status").json()["halted"] is not None, 5)
    # And the one that leads is on record, until it leaves
    frozen.kill()
    assert other.stop() == 0
    assert on_record(postgresql_url) == (leaders.Office(2, ""), "told the wrong one")
    assert problem(api.ask("GET", "/api/v1/status")) == "no-leader"
