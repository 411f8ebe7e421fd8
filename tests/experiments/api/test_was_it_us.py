"""``GET /api/v1/was-it-us``: what was armed in a window, over HTTP."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx
import pytest

from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import Database
from ldfi.testing.world import QUICK, World
from tests.kit.service import GIVEN, bearer, client_of, problem, service

PATH = "/api/v1/was-it-us"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Of a service that has explored something in the last ten minutes, and was halted."""
    url = f"sqlite:///{tmp_path_factory.mktemp('was') / 'x.sqlite3'}"
    database, begun = Database(url), time.time() - 600
    world = World(database, engine=Engine(database, now=begun))
    world.now = begun
    world.finish(world.start(QUICK))
    world.engine.scheduler.switch.halt("a drill", "ben", world.now)
    world.engine.scheduler.switch.resume("ben", world.now + 1)
    world.engine.scheduler.shut_down("over", world.now)
    database.close()
    with client_of(service(url)) as found:
        found.headers.update(bearer(GIVEN["viewer"]))
        yield found


def test_the_last_quarter_of_an_hour_is_what_one_asks_for(client: httpx.Client) -> None:
    answer = client.get(PATH).json()
    assert answer["until"] - answer["since"] == 900
    assert answer["answer"] == "perhaps"
    assert answer["words"].startswith("Perhaps: ")
    assert len(answer["items"]) == answer["experiments"] > 0
    assert sum(each["hurt"] for each in answer["items"]) == answer["hurt"] > 0
    assert [row["what"] for row in answer["done"]] == ["halt", "resume"]
    assert {row["who"] for row in answer["done"]} == {"ben"}


def test_no_is_said_where_nothing_was_armed(client: httpx.Client) -> None:
    for where in ({"since": 100, "until": 1000}, {"request_class": "GET /elsewhere"}):
        answer = client.get(PATH, params=where).json()
        assert (answer["answer"], answer["items"]) == ("no", [])
        assert answer["words"] == "No: nothing was injected."


def test_it_is_read_page_by_page(client: httpx.Client) -> None:
    whole = client.get(PATH).json()
    window = {"since": whole["since"], "until": whole["until"], "limit": 1}
    first = client.get(PATH, params=window)
    assert first.links["next"]["url"]
    following = client.get(PATH, params={**window, "cursor": first.json()["cursor"]})
    assert first.json()["experiments"] == whole["experiments"]
    found = [*first.json()["items"], *following.json()["items"]]
    assert [each["id"] for each in found] == [each["id"] for each in whole["items"][:2]]


def test_a_window_that_ends_before_it_begins_is_refused(client: httpx.Client) -> None:
    refused = client.get(PATH, params={"since": 1000, "until": 100})
    assert (refused.status_code, problem(refused)) == (422, "invalid")
