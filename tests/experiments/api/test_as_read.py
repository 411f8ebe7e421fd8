"""What is read can be posted; and old forms are taken, and said to be old."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from ldfi.experiments.api.deprecated import SINCE
from ldfi.experiments.api.idempotency import REPLAYED
from tests.experiments.api.test_openapi import DOCUMENT
from tests.kit.service import client_of, live_through, problem, service

BOUNDS = {"treatment": 0.3, "control": 0.3, "min_traffic": 50, "settle": 1.0}
BOUNDS |= {"follow": 0.0, "apart": 0.0}
"""With the traffic there was, these decide."""

KEPT = {"ldfi": "comparison", "version": 1, "verdict": "same", "classes": [], "doubts": []}

MADE: dict[str, tuple[str, ...]] = {
    "/campaigns": ("definition",),
    "/experiments": ("request_class", "hypothesis"),
    "/maintenance": ("down", "seconds", "reason", "owner"),
    "/tokens": ("name", "role", "expires_in"),
    "/replays/runs": ("document", "verdict"),
    "/namespaces": ("name", "max_concurrent", "members_per_day"),
}
"""Every list of things that can be made, and what must be the same of one that is made again."""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    url = f"sqlite:///{tmp_path_factory.mktemp('read') / 'x.sqlite3'}"
    live_through(url)
    with client_of(service(url)) as opened:
        opened.base_url = httpx.URL(f"{opened.base_url}/api/v1")
        window = {"reason": "upgrade", "down": ["db"], "seconds": 60, "owner": "ann"}
        opened.post("/maintenance", json=window).raise_for_status()
        token = {"name": "kim", "role": "viewer", "expires_in": 60.0}
        opened.post("/tokens", json=token).raise_for_status()
        opened.post("/replays/runs", json={"document": KEPT}).raise_for_status()
        team = {"name": "checkout", "members_per_day": 50}
        opened.post("/namespaces", json=team).raise_for_status()
        yield opened


def newest(client: httpx.Client, path: str) -> dict[str, Any]:
    found = client.get(path).json()
    first: dict[str, Any] = (found if isinstance(found, list) else found["items"])[0]
    return first


def test_the_table_has_every_list_of_what_can_be_made() -> None:
    paths = {path for path, item in DOCUMENT["paths"].items() if {"get", "post"} <= set(item)}
    made = {path.removeprefix("/api/v1") for path in paths}
    assert made - {"/loose-calls"} == set(MADE)  # these are seen, and a word is said of them


@pytest.mark.parametrize("path", MADE)
def test_what_is_read_makes_another_one_like_it(client: httpx.Client, path: str) -> None:
    read = newest(client, path)
    bounds = {"settings": BOUNDS} if path == "/experiments" else {}  # which are its campaign's
    answer = client.post(path, json={**read, **bounds})

    assert answer.is_success, answer.text
    made = answer.json()
    assert "deprecation" not in answer.headers
    if path == "/tokens":
        made = made["entry"]
    if path == "/experiments":  # which is a campaign of its own
        definition = made["definition"]
        assert definition["classes"] == [read["request_class"]]
        assert definition["hypotheses"] == [sorted(read["hypothesis"])]
        read, made = made, client.post("/campaigns", json=made).raise_for_status().json()
        assert made["id"] != read["id"]
        assert made["definition"] == definition
        return
    for name in MADE[path]:
        seconds = name in {"seconds", "expires_in"}
        assert made[name] == (pytest.approx(read[name]) if seconds else read[name]), name
    if path == "/namespaces":  # of a name there is one
        assert made == read
        return
    assert made["id"] != read["id"]


@pytest.mark.parametrize("path", MADE)
def test_what_nobody_knows_is_refused_all_the_same(client: httpx.Client, path: str) -> None:
    assert problem(client.post(path, json={**newest(client, path), "colour": 1})) == "invalid"


def test_a_campaign_is_made_again_with_a_change(client: httpx.Client) -> None:
    read = newest(client, "/campaigns")
    asked = {**read, "name": "other", "settings": {"max_size": 1}}
    changed = client.post("/campaigns", json=asked).json()["definition"]

    assert changed["name"] == "other"
    assert changed["settings"] == {**read["definition"]["settings"], "max_size": 1}


def test_hypotheses_want_one_class_that_reaches_them(client: httpx.Client) -> None:
    def asked(**more: Any) -> httpx.Response:
        return client.post("/campaigns", json={"hypotheses": [["error@nowhere"]], **more})

    name = newest(client, "/experiments")["request_class"]
    assert problem(asked()) == "invalid"
    assert problem(asked(classes=["GET /nobody"])) == "not-found"
    assert problem(asked(classes=[name])) == "unknown-point"


def test_what_is_said_in_settings_is_not_chosen_by_a_profile(client: httpx.Client) -> None:
    asked = {"settings": {"profile": "staging", "treatment": 0.07}}
    assert client.post("/forecast", json=asked).json()["settings"]["treatment"] == 0.07


def old_and_new(client: httpx.Client) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    finding = newest(client, "/findings")["id"]
    tried = newest(client, "/experiments")
    what = {name: tried[name] for name in ("request_class", "hypothesis")}
    yield "/campaigns", BOUNDS, {"settings": BOUNDS}
    yield "/forecast", BOUNDS, {"settings": BOUNDS}
    yield "/experiments", {**what, **BOUNDS}, {**what, "settings": BOUNDS}
    yield f"/findings/{finding}/verify", BOUNDS, {"settings": BOUNDS}
    yield f"/findings/{finding}/acknowledge", {"reason": "known"}, {"note": "known"}
    page = "https://tracker.example.org/1"
    yield f"/findings/{finding}/link", {"url": page}, {"tracker_url": page}


def meant(answer: dict[str, Any]) -> Any:
    """What came of a request, but for what differs each time."""
    return answer.get("definition") or answer.get("settings") or answer


def test_old_forms_are_taken_and_said_to_be_old(client: httpx.Client) -> None:
    for path, old, new in old_and_new(client):
        before = client.post(path, json=old)
        after = client.post(path, json=new)

        assert before.is_success, (path, before.text)
        assert meant(before.json()) == meant(after.json()), path
        assert before.headers["deprecation"] == f"@{SINCE}"
        assert before.links["deprecation"]["url"].endswith("#old-forms")
        assert "deprecation" not in after.headers
        assert problem(client.post(path, json={**old, "colour": 1})) == "invalid"
    assert time.time() > SINCE


def test_what_is_sent_again_is_answered_with_the_same_header(client: httpx.Client) -> None:
    key = {"Idempotency-Key": "old-form"}
    asked = {**BOUNDS, "seed": 3}
    first, again = (client.post("/campaigns", json=asked, headers=key) for _ in range(2))

    assert again.headers[REPLAYED] == "true"
    assert again.headers["deprecation"] == first.headers["deprecation"]


def test_both_forms_at_once_say_nothing(client: httpx.Client) -> None:
    finding = newest(client, "/findings")["id"]
    bodies: dict[str, list[dict[str, str | None]]] = {
        "acknowledge": [{"note": "a", "reason": "b"}, {}],
        "link": [{"url": None, "tracker_url": None}, {}],
    }
    for what, said in bodies.items():
        for body in said:
            assert problem(client.post(f"/findings/{finding}/{what}", json=body)) == "invalid"


def test_a_page_says_in_one_word_where_it_goes_on(client: httpx.Client) -> None:
    first = client.get("/audit?limit=1").json()

    assert first["cursor"] == first["next"]
    following = client.get("/audit", params={"limit": 1, "cursor": first["cursor"]}).json()
    assert following["items"] != first["items"]
