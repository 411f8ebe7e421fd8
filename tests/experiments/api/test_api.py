"""The whole service over a socket: campaigns, the kill switch, and what holds for every route."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from ldfi.experiments.api.idempotency import REPLAYED
from ldfi.experiments.api.routes import MAX_BODY
from ldfi.experiments.scheduler.engine import Engine
from tests.kit.service import GIVEN, bearer, client_of, problem, service

VIEWER, OPERATOR, EDGE = (bearer(GIVEN[role]) for role in ("viewer", "operator", "edge"))
WHY = {"reason": "release"}
JSON = {"content-type": "application/json"}


def items(client: httpx.Client, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"/api/v1/{path}").raise_for_status().json()["items"]
    return found


def test_health_needs_no_token_and_tells_when_the_engine_stands_still(
    app: FastAPI, client: httpx.Client
) -> None:
    with httpx.Client(base_url=client.base_url, trust_env=False) as stranger:
        assert stranger.get("/healthz").json() == {"status": "ok"}
        assert stranger.get("/readyz").json() == {"status": "ready"}
        engine: Engine = app.state.engine
        engine.tick = lambda now, most=0: False  # type: ignore[method-assign]
        engine.ticked_at -= 60
        assert problem(stranger.get("/readyz")) == "not-ready"
        assert stranger.get("/healthz").is_success


def test_halt_stays_until_resume_and_is_in_the_audit(client: httpx.Client) -> None:
    halted = client.post("/api/v1/halt", json=WHY)
    refused = client.post("/api/v1/campaigns", json={})

    assert halted.json()["halted"] == "release"
    assert client.get("/api/v1/status").json()["halted"] == "release"
    assert problem(refused) == "halted"
    assert client.post("/api/v1/resume").json() == {"halted": None}
    assert client.post("/api/v1/campaigns", json={}).status_code == 201
    done = [(row["what"], row["who"], row["why"]) for row in items(client, "audit")]
    assert [what for what, _, _ in done] == ["campaign running", "resume", "halt"]
    assert done[-1] == ("halt", "operator", "release")


def test_who_halts_what_is_halted_takes_no_reason_away(client: httpx.Client) -> None:
    client.post("/api/v1/halt", json={"reason": "checkout is slow"})
    again = client.post("/api/v1/halt", json={"reason": "records are down"})
    client.post("/api/v1/halt", json={"reason": "checkout is slow"})

    both = "checkout is slow; also: records are down"
    assert again.json()["halted"] == both
    assert client.get("/api/v1/status").json()["halted"] == both
    said = [row["why"] for row in items(client, "audit")]
    assert said == ["checkout is slow", "records are down", "checkout is slow"]
    client.post("/api/v1/resume")
    assert client.post("/api/v1/halt", json=WHY).json()["halted"] == "release"


def test_a_halt_outlives_the_service(database_url: str) -> None:
    with client_of(service(database_url), GIVEN["operator"]) as client:
        client.post("/api/v1/halt", json=WHY)
    with client_of(service(database_url), GIVEN["operator"]) as client:
        assert problem(client.post("/api/v1/campaigns", json={})) == "halted"


def test_a_campaign_goes_through_its_states(client: httpx.Client) -> None:
    started = client.post("/api/v1/campaigns", json={"name": "nightly"}).json()
    path = f"/api/v1/campaigns/{started['id']}"

    assert (started["state"], started["created_by"]) == ("running", "operator")
    assert problem(client.post(f"{path}/resume")) == "conflict"
    assert client.post(f"{path}/pause", json=WHY).json()["state"] == "paused"
    assert problem(client.post(f"{path}/pause", json=WHY)) == "conflict"
    assert client.post(f"{path}/resume").json()["state"] == "running"
    assert client.post(f"{path}/stop", json=WHY).json()["state"] == "stopped"
    assert problem(client.post(f"{path}/resume")) in {"conflict", "not-found"}
    assert client.get(path).json()["reason"] == "release"
    assert client.get(f"{path}/certificates").json() == []
    assert [each["id"] for each in items(client, "campaigns?state=stopped")] == [started["id"]]
    assert items(client, "campaigns?state=running") == []


def test_what_is_safe_without_a_reason_needs_none(client: httpx.Client) -> None:
    path = f"/api/v1/campaigns/{client.post('/api/v1/campaigns', json={}).json()['id']}"

    assert client.post(f"{path}/pause").json()["state"] == "paused"
    stopped = client.post(f"{path}/stop").json()
    assert (stopped["state"], stopped["reason"]) == ("stopped", "no reason given")
    assert client.post("/api/v1/halt").json()["halted"] == "no reason given"


def test_a_campaign_that_is_read_can_be_asked_for_again(
    client: httpx.Client,
) -> None:
    # Given a campaign with all that one can ask for
    asked = {
        "name": "nightly",
        "classes": ["GET /boot*"],
        "members": 7,
        "kinds": ["refused", "status:500"],
        "calendar": {
            "timezone": "Europe/Berlin",
            "days": ["mon"],
            "hours": ["22:00", "06:00"],
            "blackouts": [{"first": "2026-12-18", "last": "2027-01-04", "why": "holidays"}],
        },
        "schedule": {"cron": "0 9 * * mon", "timezone": "Europe/Berlin"},
    }
    started = client.post("/api/v1/campaigns", json=asked).json()
    assert started["state"] == "scheduled"
    assert started["next_run_at"] > time.time()
    read = started["definition"]
    assert read["calendar"] == asked["calendar"]
    # When what is read is asked for, as it is and with a change
    again = client.post("/api/v1/campaigns", json=read)
    changed = client.post("/api/v1/campaigns", json={**read, "members": 9})
    # Then the same comes, but for the change
    assert again.json()["definition"] == read
    settings = {**read["settings"], "members": 9}
    assert changed.json()["definition"] == {**read, "settings": settings}


@pytest.mark.parametrize(
    "asked",
    [
        {"max_size": 0},
        {"max_size": "2"},
        {"max_size": True},
        {"treatment": 0.9},
        {"treatment": float("nan")},
        {"approve_above": float("inf")},
        {"member_budget": 10**30},
        {"seed": -1},
        {"kinds": ["fire"]},
        {"kinds": []},
        {"colour": 1},
        {"strategy": "x"},
        {"name": "nul\0"},
        {"name": "bell\a"},
        {"classes": ["half a \ud83d"]},
        {"calendar": {"timezone": "Mars/Olympus"}},
        {"calendar": {"hours": ["25:00", "26:00"]}},
        {"calendar": {"hours": ["09:00"]}},
        {"calendar": {"days": ["Monday"]}},
        {"calendar": {"blackouts": [{"first": "2026-12-24", "last": "2026-01-01", "why": "x"}]}},
        {"schedule": {"cron": "0 0 30 2 *"}},
        {"schedule": {"cron": "now"}},
        {"kinds": ["error", "error"]},
        {"alike": ["5xx", "5xx"]},
        {"proxied": ["*ratings*", "*ratings*"]},
    ],
    ids=str,
)
def test_bounds_that_make_no_sense_are_refused(
    standing: httpx.Client, asked: dict[str, object]
) -> None:
    body = json.dumps(asked).encode()
    answer = standing.post("/api/v1/campaigns", content=body, headers=JSON)

    assert problem(answer) == "invalid"
    assert answer.json()["errors"]
    assert items(standing, "campaigns") == []


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        *((each, "not-found") for each in ("campaigns/x", "experiments/x", "findings/x")),
        ("campaigns/x/experiments", "not-found"),
        # What can be no id is refused before the database sees it
        *((each, "invalid") for each in ("campaigns/%00", "campaigns/a%0Ab")),
        (f"findings/{'x' * 65}", "invalid"),
    ],
)
def test_what_is_not_there_is_not_found(standing: httpx.Client, path: str, kind: str) -> None:
    assert problem(standing.get(f"/api/v1/{path}")) == kind


def test_a_filter_with_its_name_misspelt_is_refused(standing: httpx.Client) -> None:
    answer = standing.get("/api/v1/findings?sate=open")

    assert problem(answer) == "invalid"
    assert answer.json()["errors"][0]["at"] == "query/sate"
    assert "state" in answer.json()["errors"][0]["what"]


def test_lists_come_in_pages(client: httpx.Client) -> None:
    started = [client.post("/api/v1/campaigns", json={}).json()["id"] for _ in range(5)]
    seen: list[str] = []
    url: str | None = "/api/v1/campaigns?limit=2"
    while url is not None:
        answer = client.get(url)
        seen += [each["id"] for each in answer.json()["items"]]
        url = answer.links.get("next", {}).get("url")

    assert seen == started[::-1]


@pytest.mark.parametrize(
    "path",
    [
        "halt",
        "resume",
        "campaigns",
        "campaigns/x/stop",
        "experiments",
        "experiments/x/abort",
        "findings/x/verify",
        "maintenance",
    ],
)
def test_bodies_have_a_limit(standing: httpx.Client, path: str) -> None:
    def parts() -> Iterator[bytes]:
        yield from itertools.repeat(b" " * 65_536, MAX_BODY // 65_536 + 1)

    for body in (b" " * (MAX_BODY + 1), parts()):
        answer = standing.post(f"/api/v1/{path}", content=body, headers=JSON)
        assert problem(answer) == "too-large"
    just = standing.post(f"/api/v1/{path}", content=b" " * MAX_BODY, headers=JSON)
    assert just.status_code != 413


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
def test_what_is_not_said_to_be_json_is_not_read(standing: httpx.Client, kind: str) -> None:
    body, headers = b'{"reason": "x"}', {"content-type": kind}
    answer = standing.post("/api/v1/halt", content=body, headers=headers)
    assert problem(answer) == "unsupported-media-type"


def test_a_method_that_a_path_does_not_have_is_told_those_it_has(standing: httpx.Client) -> None:
    answer = standing.put("/api/v1/campaigns", json={})

    assert problem(answer) == "method-not-allowed"
    assert answer.headers["allow"] == "GET, POST"


def test_a_campaign_that_is_started_twice_with_one_key_is_one(client: httpx.Client) -> None:
    def start(seed: int) -> httpx.Response:
        headers = {"Idempotency-Key": "8e03978e"}
        return client.post("/api/v1/campaigns", json={"seed": seed}, headers=headers)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: start(7), range(4)))
    again = start(7)

    assert {answer.status_code for answer in answers} <= {201, 409}
    (campaign,) = items(client, "campaigns")
    assert {a.json()["id"] for a in (*answers, again) if a.is_success} == {campaign["id"]}
    assert again.headers[REPLAYED] == "true"
    assert problem(start(8)) == "idempotency-key-reused"


def test_the_edge_waits_for_news_no_longer_than_it_asked_to(client: httpx.Client) -> None:
    first = client.get("/api/v1/edge/rules", params={"edge": "e1"}, headers=EDGE).json()
    started = time.monotonic()
    query = {"edge": "e1", "version": first["version"], "wait": "0.2"}
    again = client.get("/api/v1/edge/rules", params=query, headers=EDGE).json()

    assert first["rules"] == []
    assert again == first
    assert time.monotonic() - started >= 0.15  # three quarters of it, at least
    assert client.get("/api/v1/status").json()["edges"] == 1


def test_an_edge_has_to_say_which_one_it_is(standing: httpx.Client) -> None:
    for query in ({}, {"edge": ""}, {"edge": "A B"}, {"edge": "e1", "used": "x"}):
        assert problem(standing.get("/api/v1/edge/rules", params=query, headers=EDGE)) == "invalid"
