"""A process without the engine, and one with it: what is answered where."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from ldfi.experiments.store import namespaces
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import FlagRow
from tests.experiments.members import until
from tests.kit.service import GIVEN, bearer, client_of, problem, service

pytestmark = pytest.mark.servers

KEY = b"the same in all of them"


@contextmanager
def leader(url: str) -> Iterator[httpx.Client]:
    app = service(url, role="scheduler", member_key=KEY)
    with client_of(app) as client:
        until(lambda: client.get("/readyz").json()["status"] == "ready")
        says_where_it_is(url, str(client.base_url))
        yield client


def says_where_it_is(url: str, at: str, namespace: str = "") -> None:
    """The server has chosen its port only after the application had begun."""
    database = default = Database(url)
    if namespace:
        database = namespaces.opened(url, default, namespace)
        default.close()
    with database.change(0.0) as change:
        row = change.session.get_one(FlagRow, "leader")
        row.value = {**row.value, "url": at.rstrip("/")}
    database.close()


@pytest.fixture
def api(postgresql_url: str) -> Iterator[httpx.Client]:
    with client_of(service(postgresql_url, role="api", member_key=KEY)) as client:
        yield client


def test_the_leader_answers_what_needs_the_engine(api: httpx.Client, postgresql_url: str) -> None:
    assert problem(api.get("/api/v1/classes")) == "no-leader"
    assert api.get("/api/v1/findings").json()["items"] == []
    with leader(postgresql_url) as here:
        until(lambda: api.get("/api/v1/status").is_success, 5)
        for path in ("/api/v1/status", "/api/v1/classes", "/api/v1/campaigns/none"):
            there, direct = api.get(path), here.get(path)
            assert (there.status_code, there.json()) == (direct.status_code, direct.json())
            assert there.headers["content-type"] == direct.headers["content-type"]
        named = api.get("/api/v1/status", headers={"X-Request-ID": "mine"}).headers
        assert named.get_list("x-request-id") == ["mine"]
        # What is wrong with a request is found out before it is passed on
        assert problem(api.get("/api/v1/classes", params={"typo": 1})) == "invalid"
        stranger = httpx.get(f"{api.base_url}/api/v1/status", trust_env=False)
        assert problem(stranger) == "unauthorized"
        # Telemetry has no stream to go to, so it goes to the engine's memory
        trace = {"device": "d", "trace_id": "a" * 32, "outcome": "success"}
        sent = api.post("/api/v1/device-metrics", json={"metrics": [trace]})
        assert sent.json() == {"accepted": 1, "rejected": 0}
        assert here.get("/api/v1/status").json()["outcomes"] == 1
        # A body arrives whole, and an error of the leader comes back as it is
        new = {"classes": ["none"], "bounds": {"nonsense": "é" * 1000}}
        assert api.post("/api/v1/campaigns", json=new).json() == (
            here.post("/api/v1/campaigns", json=new).json()
        )
        # What is asked of a process itself it answers itself
        assert "ldfi_leads 0.0" in api.get("/metrics").text
        assert "ldfi_leads 1.0" in here.get("/metrics").text
        assert "ldfi_tick_age_seconds" not in api.get("/metrics").text
        assert api.get("/readyz").json() == {"status": "standby"}
    refused = api.get("/api/v1/status")
    assert problem(refused) == "no-leader"
    assert refused.headers["retry-after"] == "1"


def test_events_are_passed_on_one_by_one(api: httpx.Client, postgresql_url: str) -> None:
    with leader(postgresql_url):
        until(lambda: api.get("/api/v1/status").is_success, 5)
        with api.stream("GET", "/api/v1/events") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            lines = stream.iter_lines()
            assert "event: open" in {next(lines), next(lines)}
            api.post("/api/v1/halt", json={"reason": "to see it"}).raise_for_status()
            until(lambda: "to see it" in next(lines))


def test_two_that_each_take_the_other_for_the_leader_come_to_an_end(
    api: httpx.Client, postgresql_url: str
) -> None:
    with leader(postgresql_url):
        says_where_it_is(postgresql_url, str(api.base_url))
        until(lambda: api.get("/api/v1/status").status_code == 503, 5)
        assert problem(api.get("/api/v1/status")) == "no-leader"


def test_a_leader_that_does_not_answer_is_none(api: httpx.Client, postgresql_url: str) -> None:
    with leader(postgresql_url):
        pass
    says_where_it_is(postgresql_url, "http://127.0.0.1:1")
    until(lambda: "does not answer" in api.get("/api/v1/status").json()["detail"], 5)
    # Edges are told that there is nothing to do, and ask again
    headers = bearer(GIVEN["edge"])
    assert api.get("/api/v1/edge/rules?edge=e", headers=headers).json()["rules"] == []


def test_another_namespace_is_answered_by_any_process_and_led_with_the_default_one(
    api: httpx.Client, postgresql_url: str
) -> None:
    admin, team = bearer(GIVEN["admin"]), {"Ldfi-Namespace": "checkout"}
    with leader(postgresql_url) as here:
        # Given a namespace that was made in the process that does not lead
        made = api.post("/api/v1/namespaces", json={"name": "checkout"}, headers=admin)
        assert made.is_success, made.text
        new = {"name": "kim", "role": "admin"}
        told = api.post("/api/v1/tokens", json=new, headers={**admin, **team})
        token = bearer(told.json()["token"])
        until(lambda: here.get("/api/v1/status", headers=token).is_success)
        says_where_it_is(postgresql_url, str(here.base_url), "checkout")
        # Then the one that leads has its engine, and both answer
        until(lambda: api.get("/api/v1/status", headers=token).is_success)
        assert api.get("/api/v1/classes", headers=token).json() == []
        # Its halt is its own, wherever somebody halts, and that of the default one is everybody's
        for client, who, reason in ((api, token, "mine"), (here, token, "mine as well")):
            assert client.post("/api/v1/halt", json={"reason": reason}, headers=who).is_success
        until(lambda: here.get("/api/v1/status", headers=token).json()["halted"] is not None)
        assert here.get("/api/v1/status").json()["halted"] is None
        assert api.post("/api/v1/resume", headers=token).json() == {"halted": None}
        assert api.post("/api/v1/halt", json={"reason": "all"}).is_success
        until(lambda: here.get("/api/v1/status", headers=token).json()["halted"] == "all", 5)
        assert api.post("/api/v1/resume", headers=token).json() == {"halted": "all"}
    # Whoever leads next finds it on record, and what it had
    with leader(postgresql_url) as next_:
        assert next_.get("/api/v1/status", headers=token).json()["halted"] == "all"
        assert [row["what"] for row in next_.get("/api/v1/audit", headers=token).json()["items"]]
        assert next_.post("/api/v1/resume").json() == {"halted": None}
        until(lambda: next_.get("/api/v1/status", headers=token).json()["halted"] is None, 5)
