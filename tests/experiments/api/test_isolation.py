"""Two teams in one service: none learns of the other, or changes anything there, by any route."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from sqlalchemy import select

from ldfi.experiments.api import events
from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import namespaces
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import Base, ExperimentRow, FindingRow, ReplayRow
from ldfi.testing.programs import Call, Step
from ldfi.testing.world import World
from tests.experiments.api.test_roles import ALLOWED, ENDLESS, OPEN
from tests.kit.service import GIVEN, Unlimited, bearer, client_of, service

RATINGS, LAYOUT = (Call(f"api>http:GET:{name}/secretly") for name in ("ratings", "layout"))
PROGRAM: Final = Call("root", (Step("optional", (RATINGS,)), Step("critical", (LAYOUT,))))
OTHER: Final = Call("root", (Step("critical", (Call("api>http:GET:till/pay"),)),))
QUICK: Final = Settings(
    kinds=("error",), treatment=0.3, control=0.3, settle=1.0, follow=0.0, apart=0.0, rechecks=0
)
SECRETS: Final = ("secretly", "boot-of-b", "hush", "mallory")
"""Parts of names that only team B has: points, a class, reasons, people."""

BODIES: Final[dict[str, dict[str, Any]]] = {
    "reason": {"reason": "why"},
    "note": {"note": "why"},
    "url": {"url": "https://tracker.example/1"},
    "class": {"request_class": "GET /boot-of-b"},
    "nothing": {},
}
"""What routes with an id take: one of these is right for each."""

KEPT: Final = {"flag", "idempotency", "alembic_version"}
"""Tables that a leader writes by itself."""


@dataclass(frozen=True)
class Teams:
    """A running service, with a team A and a team B that has done something."""

    client: httpx.Client
    tokens: dict[str, str]
    ids: dict[str, str]
    store: Database


def seeded(store: Database, name: str, program: Call) -> dict[str, str]:
    """Let a team find something, and open a window."""
    began = time.time() - 3600
    engine = Engine(store, now=began)
    world = World(store, {name: program}, engine=engine)
    world.now = began
    campaign = world.start(QUICK, who="mallory" if "b" in name else "ann")
    world.finish(campaign)
    waiting: Campaign = world.start(QUICK, who="mallory" if "b" in name else "ann")
    engine.scheduler.commands.pause(waiting.id, "hush", "mallory", world.now)
    window = Maintenance("w" * 12, "mallory", "hush", ("layout",), world.now, time.time() + 3600)
    engine.scheduler.commands.open_maintenance(window, "mallory", world.now)
    engine.scheduler.shut_down("the service was stopped", world.now)
    with store.change(world.now) as change:
        kept = {"kept_at": world.now, "kept_by": "mallory", "document": {}}
        change.session.add(ReplayRow(id="f" * 12, **kept))
        experiment = change.session.scalars(select(ExperimentRow.id).limit(1)).one()
        finding = change.session.scalars(select(FindingRow.id).limit(1)).one()
    ids = {"campaign_id": waiting.id, "experiment_id": experiment, "finding_id": finding}
    ids |= {"window_id": window.id, "replay_id": "f" * 12, "trace_id": "0" * 31 + "1"}
    return ids | {"before": campaign.id}


@pytest.fixture(scope="module")
def teams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Teams]:
    url = f"sqlite:///{tmp_path_factory.mktemp('teams') / 'ldfi.sqlite3'}"
    default = Database(url)
    with default.change(1.0, "ann") as change:
        for name in ("team-a", "team-b"):
            namespaces.put(change, name)
    store = namespaces.opened(url, default, "team-b")
    ids = seeded(store, "/boot-of-b", PROGRAM)
    app = service(url)
    with client_of(app, None) as client:
        for each in (app, *(app.state.namespaces.get(name) for name in ("team-a", "team-b"))):
            each.state.rate_limiter = Unlimited()
        made = {}
        for name in ("team-a", "team-b"):
            answer = client.post(
                "/api/v1/tokens",
                json={"name": "kim", "role": "admin"},
                headers={**bearer(GIVEN["admin"]), "Ldfi-Namespace": name},
            )
            made[name] = answer.json()["token"]
            ids["token_id"] = answer.json()["entry"]["id"]
        yield Teams(client, made, ids, store)
    store.close()
    default.close()


def path_of(route: str, ids: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: ids[found[1]], route)


def contents(store: Database) -> dict[str, str]:
    """What is on record, but for what goes on by itself."""
    with store.read() as session:
        return {
            table.name: repr(session.execute(select(table)).all())
            for table in Base.metadata.sorted_tables
            if table.name not in KEPT
        }


WITH_ID: Final = sorted(route for route in ALLOWED if "{" in route[1])
WITHOUT: Final = sorted(set(ALLOWED) - set(WITH_ID) - OPEN - {ENDLESS})


@pytest.mark.parametrize("route", WITH_ID, ids=" ".join)
def test_an_id_of_another_team_is_no_id(teams: Teams, route: tuple[str, str]) -> None:
    method, path = route
    before = contents(teams.store)
    for body in BODIES.values() if method in {"POST", "PUT"} else [None]:
        answer = teams.client.request(
            method, path_of(path, teams.ids), json=body, headers=bearer(teams.tokens["team-a"])
        )
        # 422: the body is not the one that this route takes; one of the others is
        assert answer.status_code in {404, 422}, answer.text
        assert not [each for each in SECRETS if each in answer.text]
        if answer.status_code == 404:
            break
    else:
        assert path.endswith("/runs"), "none of the bodies was right"
    assert contents(teams.store) == before


READ: Final = [
    (method, path)
    for method, path in WITH_ID
    # a request to replay is kept in memory; the document of a run is its own test
    if method == "GET" and not path.startswith("/api/v1/replays/")
]


@pytest.mark.parametrize("route", READ, ids=" ".join)
def test_but_it_is_one_to_its_own(teams: Teams, route: tuple[str, str]) -> None:
    """Or a service that knows nothing would pass the test above."""
    answer = teams.client.get(path_of(route[1], teams.ids), headers=bearer(teams.tokens["team-b"]))
    assert answer.status_code in {200, 409}, answer.text  # 409: its traces are not there any more


QUERIES: Final[dict[str, dict[str, Any]]] = {
    "/api/v1/whatif": {"down": "layout"},
    "/api/v1/maintenance/gate": {"down": "layout"},
    "/api/v1/ids": {"prefix": "w"},
    "/api/v1/edge/rules": {"edge": "e1", "wait": 0},
    "/api/v1/was-it-us": {},
}


@pytest.mark.parametrize("route", WITHOUT, ids=" ".join)
def test_no_list_and_no_answer_tells_of_another_team(teams: Teams, route: tuple[str, str]) -> None:
    method, path = route
    body: Any = {} if method == "POST" else None
    query, headers = QUERIES.get(path), bearer(teams.tokens["team-a"])
    answer = teams.client.request(method, path, params=query, json=body, headers=headers)
    theirs = [each for each in (*SECRETS, *teams.ids.values()) if each in answer.text]
    own = teams.ids["trace_id"]
    assert not [each for each in theirs if each != own], answer.text
    if (method, path) == ("POST", "/api/v1/resume"):
        return
    assert answer.status_code < 500


@pytest.mark.parametrize(
    "name", ["campaigns", "experiments", "findings", "classes", "audit", "maintenance"]
)
def test_lists_are_those_of_ones_own(teams: Teams, name: str) -> None:
    def told(token: str) -> set[str]:
        answer = teams.client.get(f"/api/v1/{name}", headers=bearer(token)).raise_for_status()
        return {each for each in SECRETS if each in answer.text}

    assert told(teams.tokens["team-b"])
    assert not told(teams.tokens["team-a"])
    assert not told(GIVEN["admin"])


PAGES: Final = [
    *("/", "/campaigns", "/campaigns/{before}", "/experiments", "/experiments/{experiment_id}"),
    *("/findings", "/findings/{finding_id}", "/classes", "/certificates", "/certificates/{before}"),
    *("/maintenance", "/audit", "/tokens", "/safety", "/map", "/search?q=secretly"),
]


def test_pages_are_those_of_ones_own(teams: Teams) -> None:
    seen = {}
    for name in ("team-a", "team-b"):
        link = teams.client.post("/api/v1/login-links", headers=bearer(teams.tokens[name]))
        with httpx.Client(base_url=teams.client.base_url, trust_env=False, timeout=60) as browser:
            form = browser.get(link.json()["path"])
            csrf = re.search(r'name="csrf" value="([^"]+)"', form.text)
            assert csrf is not None
            token = re.search(r'name="link" value="([^"]+)"', form.text)
            assert token is not None
            sent = {"csrf": csrf[1], "link": token[1], "next": "/"}
            assert browser.post("/login", data=sent).status_code == 303
            answers = {page: browser.get(path_of(page, teams.ids)) for page in PAGES}
            seen[name] = {page: answer.text for page, answer in answers.items()}
            assert {answer.status_code for answer in answers.values()} <= {200, 404}
            cookie = browser.cookies["ldfi_session"]
        # The cookie opens nothing elsewhere, whatever it says of itself
        for pretended in ("team-a", "team-b", ""):
            if pretended != name:
                bare = cookie.partition("~")[2]
                forged = f"{pretended}~{bare}" if pretended else bare
                headers = {"cookie": f"ldfi_session={forged}"}
                assert teams.client.get("/findings", headers=headers).status_code == 303
    told = [page for page in PAGES if "secretly" in seen["team-b"][page]]
    assert len(told) > 4
    for page in PAGES:
        # what was asked for is said again where nothing was found
        text = seen["team-a"][page].replace("q=secretly", "").replace('value="secretly"', "")
        text = text.replace(path_of(page, teams.ids), "")
        if "search" not in page:
            assert not [each for each in SECRETS if each in text], page


def test_a_token_is_good_in_its_own_namespace_only(teams: Teams) -> None:
    def status(token: str, namespace: str | None = None) -> int:
        headers = bearer(token) | ({"Ldfi-Namespace": namespace} if namespace else {})
        return teams.client.get("/api/v1/status", headers=headers).status_code

    mine = teams.tokens["team-a"]
    assert status(mine) == status(mine, "team-a") == 200
    assert status(mine, "team-b") == status(mine, "default") == status(mine, "no-such") == 401
    pretended = mine.replace("team-a", "team-b")
    assert status(pretended) == status(pretended, "team-a") == 401
    # An admin of the default one may go anywhere, nobody else of it may
    assert {status(GIVEN["admin"], n) for n in ("default", "team-a", "team-b")} == {200}
    assert status(GIVEN["operator"], "team-a") == 401
    assert status(GIVEN["admin"], "no-such") == 401


def test_metrics_are_those_of_ones_own(teams: Teams) -> None:
    def lines(token: str) -> list[str]:
        return teams.client.get("/metrics", headers=bearer(token)).text.splitlines()

    a, b, all_ = (lines(each) for each in (*teams.tokens.values(), GIVEN["admin"]))
    assert not [each for each in a if each.startswith("ldfi_http_requests_total{")]
    assert [each for each in all_ if each.startswith("ldfi_http_requests_total{")]
    assert 'ldfi_classes{fit="yes"} 1.0' in b
    assert 'ldfi_classes{fit="yes"} 0.0' in a
    assert 'ldfi_classes{fit="yes"} 0.0' in all_


def test_events_are_those_of_ones_own(teams: Teams, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that B has done is told to B, from the first entry on, and none of it to A."""
    monkeypatch.setattr(events, "STREAM_SECONDS", 1.5)
    heard = {}
    for name, token in teams.tokens.items():
        headers = {**bearer(token), "Last-Event-ID": "0"}
        heard[name] = teams.client.get("/api/v1/events", headers=headers).text
    assert "experiment armed" in heard["team-b"]
    assert "event: open" in heard["team-a"]
    assert not [each for each in SECRETS if each in heard["team-a"]]


def test_the_same_idempotency_key_is_another_one_elsewhere(teams: Teams) -> None:
    answers = {}
    for name, token in teams.tokens.items():
        new = {"down": ["nothing-real"], "seconds": 60, "reason": name}
        headers = {**bearer(token), "Idempotency-Key": "one"}
        answers[name] = teams.client.post("/api/v1/maintenance", json=new, headers=headers)
    assert {each.status_code for each in answers.values()} == {201}
    assert len({each.json()["id"] for each in answers.values()}) == 2


def test_spans_and_outcomes_belong_to_whose_token_sent_them(teams: Teams) -> None:
    def outcomes(name: str) -> int:
        answer = teams.client.get("/api/v1/status", headers=bearer(teams.tokens[name]))
        return int(answer.json()["outcomes"])

    before = {name: outcomes(name) for name in teams.tokens}
    trace = {"device": "d", "trace_id": "c" * 32, "outcome": "success"}
    own = bearer(teams.tokens["team-a"])
    sent = teams.client.post("/api/v1/device-metrics", json={"metrics": [trace]}, headers=own)
    assert sent.json() == {"accepted": 1, "rejected": 0}
    assert outcomes("team-a") == before["team-a"] + 1
    assert outcomes("team-b") == before["team-b"]


def test_without_another_namespace_nothing_is_there_to_see(tmp_path: Path) -> None:
    app = service(f"sqlite:///{tmp_path / 'one.sqlite3'}")
    with client_of(app) as client:
        assert client.get("/api/v1/namespaces").json() == []
        made = client.post("/api/v1/tokens", json={"name": "kim", "role": "viewer"}).json()
        assert "." not in made["token"]
    assert sorted(each.name for each in tmp_path.glob("*.sqlite3")) == ["one.sqlite3"]
