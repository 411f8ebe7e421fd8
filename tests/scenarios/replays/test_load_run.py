"""Load against real servers on sockets: what is sent, when, and what is measured of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ldfi.errors import InvalidReplay, Unreachable
from ldfi.scenarios.replays.arrivals import RateProfile, stretches
from ldfi.scenarios.replays.connections import TargetAddress
from ldfi.scenarios.replays.intervals import quantile
from ldfi.scenarios.replays.load_run import Load, TargetLoad, measure
from ldfi.scenarios.replays.prepared import Prepared, prepared
from ldfi.scenarios.replays.recording import RecordedRequest, Recording
from ldfi.testing.live_service import served
from tests.scenarios.replays.pausing import pausing


def requests(*listed: RecordedRequest, unsafe: bool = False, **values: list[str]) -> list[Prepared]:
    return prepared(Recording(listed), values, unsafe=unsafe)[0]


def load(made: list[Prepared], rate: float, seconds: float, **more: Any) -> Load:
    return Load(made, stretches(RateProfile.CONSTANT, rate, seconds), **more)


def sent(given: Load, *urls: str, headers: dict[str, str] | None = None) -> list[TargetLoad]:
    targets = [
        TargetLoad(f"t{n}", TargetAddress.of(url), given, headers or {})
        for n, url in enumerate(urls)
    ]

    async def run() -> None:
        await measure(given, targets)

    asyncio.run(run())
    return targets


@dataclass
class Target:
    url: str = ""
    got: list[tuple[str, str, str, dict[str, str], bytes]] = field(default_factory=list)

    async def answer(self, request: Request) -> Response:
        body = await request.body()
        url = request.url
        self.got.append((request.method, url.path, url.query, dict(request.headers), body))
        match url.path:
            case "/broken":
                return JSONResponse({"rows": 0}, 500)
            case "/closing":
                return JSONResponse({"rows": 3}, headers={"connection": "close"})
            case "/never":
                await asyncio.sleep(1.5)
        return JSONResponse({"rows": 3})


@contextmanager
def target() -> Iterator[Target]:
    made = Target()
    methods = ["GET", "HEAD", "POST", "PUT"]
    with served(Starlette(routes=[Route("/{rest:path}", made.answer, methods=methods)])) as url:
        made.url = url
        yield made


GET = RecordedRequest(path="/home", query={"page": "a b&c"}, headers={"accept": "text/html"})


def test_requests_are_sent_as_recorded_and_marked() -> None:
    post = RecordedRequest(method="POST", path="/orders", body={"sku": "*"})
    head = RecordedRequest(method="HEAD", path="/ä")
    with target() as to:
        given = load(requests(GET, post, head, unsafe=True, sku=["7", "8"]), 40, 1.5)
        (made,) = sent(given, to.url + "/base", headers={"authorization": "Bearer x"})
    assert sum(len(each.due) for each in made.series.values()) == 60 == len(to.got) == made.answered
    assert {each[:3] for each in to.got} == {
        ("GET", "/base/home", "page=a%20b%26c"),
        ("POST", "/base/orders", ""),
        ("HEAD", "/base/ä", ""),
    }
    headers = [each[3] for each in to.got]
    assert {each["x-ldfi-replay"] for each in headers} == {"1"}
    assert {each["authorization"] for each in headers} == {"Bearer x"}
    assert len({each["traceparent"] for each in headers}) == 60
    assert {each[4] for each in to.got if each[0] == "POST"} == {b'{"sku": "7"}', b'{"sku": "8"}'}
    assert not made.failures.reasons


def test_a_mix_is_kept_and_asks_for_what_is_there() -> None:
    made = requests(GET, RecordedRequest(method="PUT", path="/a"), unsafe=True)
    drawn = load(made, 1, 1, writes=0.25).sequence()
    counts = Counter(next(drawn).method for _ in range(4_000))
    assert 0.2 < counts["PUT"] / 4_000 < 0.3
    with pytest.raises(InvalidReplay):
        next(load(requests(GET), 1, 1, writes=0.5).sequence())


def test_failures_and_closed_connections_are_told_apart() -> None:
    paths = ("/broken", "/closing", "/home")
    with target() as to:
        (made,) = sent(load(requests(*(RecordedRequest(path=p) for p in paths)), 60, 1), to.url)
    by_path = {each.name: each for each in made.series.values()}
    assert not by_path["GET /closing"].failed
    assert not by_path["GET /home"].failed
    assert set(by_path["GET /broken"].reasons) == {"status-500"}
    assert len(by_path["GET /broken"].failed) == len(by_path["GET /broken"].due)
    assert "status 500" in made.failures.shown[0]


def test_what_is_not_answered_in_time_is_given_up() -> None:
    listed = [RecordedRequest(path="/never"), RecordedRequest(path="/home")]
    with target() as to:
        (made,) = sent(load(requests(*listed), 40, 0.5, patience=0.8), to.url)
    assert set(made.series["GET /never"].reasons) == {"timeout"}
    assert all(each == float("inf") for each in made.series["GET /never"].seconds)


def test_nothing_listening_is_unreachable() -> None:
    with pytest.raises(Unreachable, match="nothing listens at"):
        sent(load(requests(GET), 10, 1), "http://127.0.0.1:9")


def test_two_targets_are_sent_the_same_in_turns() -> None:
    other = RecordedRequest(path="/other")
    with target() as one, target() as two:
        made = sent(load(requests(GET, other), 50, 1), one.url, two.url)
    for name in made[0].series:
        assert len(made[0].series[name].due) == len(made[1].series[name].due)
        apart = zip(made[0].series[name].due, made[1].series[name].due, strict=True)
        assert all(abs(a - b) < 0.011 for a, b in apart)  # one slot of the hundred a second
    first = [
        a < b
        for a, b in zip(
            made[0].series["GET /other"].due, made[1].series["GET /other"].due, strict=True
        )
    ]
    assert 0 < sum(first) < len(first), "neither is always second"


def test_a_server_that_stops_for_a_second_shows_it() -> None:
    # Given a server that answers at once, but for one second in which it stands still
    with pausing(after=1.5, seconds=1.0) as url:
        (made,) = sent(load(requests(RecordedRequest(path="/")), 100, 5), url)
    # Then whoever would have asked meanwhile has waited: a fifth of all, not one request
    ordered = sorted(made.series["GET /"].seconds)
    assert len(ordered) == 500
    assert quantile(ordered, 0.999) >= 0.9
    assert sum(each > 0.3 for each in ordered) >= 50
    assert quantile(ordered, 0.9) >= 0.3
