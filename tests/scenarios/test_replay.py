"""Replayed traffic against a real application on a socket."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from ldfi.errors import InvalidReplay
from ldfi.scenarios.replay import ANYTHING, Assertion, Exemplar, Replayer, Sent, _next_slot
from ldfi.testing.live_service import served

HOME = {"rows": [{"title": "new"}, {"title": "old"}], "ok": True}
METHODS = ["GET", "HEAD", "OPTIONS", "POST"]


@dataclass
class Staging:
    url: str = ""
    got: list[tuple[float, Request]] = field(default_factory=list)

    async def answer(self, request: Request) -> Response:
        self.got.append((time.monotonic(), request))
        match request.url.path:
            case "/home":
                return JSONResponse(HOME)
            case "/hidden":
                return JSONResponse({"error": "out of rows"})
            case "/broken":
                return PlainTextResponse("sorry", 500)
            case "/moved":
                return RedirectResponse("/home")
            case "/slow":
                await asyncio.sleep(0.3)
        return PlainTextResponse("fine")


@pytest.fixture
def staging() -> Iterator[Staging]:
    staging = Staging()
    app = Starlette(routes=[Route("/{rest:path}", staging.answer, methods=METHODS)])
    with served(app) as url:
        staging.url = url
        yield staging


def replay(replayer: Replayer, count: int, at_most: float = 5.0) -> list[Sent]:
    """Run until ``count`` outcomes have come, or for so many seconds."""
    outcomes: list[Sent] = []

    async def run() -> int:
        stop = asyncio.Event()

        def sink(outcome: Sent) -> None:
            outcomes.append(outcome)
            if len(outcomes) >= count:
                stop.set()

        asyncio.get_running_loop().call_later(at_most, stop.set)
        return await replayer.run(sink, stop)

    sent = asyncio.run(run())
    assert sent == len(outcomes)
    return outcomes


def one(staging: Staging, path: str, **arguments: Any) -> Sent:
    replayer = Replayer(staging.url, [Exemplar("GET", path)], 0.1, **arguments)  # one, and no more
    return replay(replayer, 1)[0]


def test_every_request_is_marked_and_the_driver_knows_its_trace(staging: Staging) -> None:
    exemplars = [
        Exemplar("get", "/home", "page=2&tag=%2Fa&tag=b", {"X-Device-Type": "tv"}),
        Exemplar("HEAD", "/home/ä b"),
    ]

    outcomes = replay(Replayer(staging.url + "/", exemplars, 500, devices=4), 100)

    traces = {}
    for _, request in staging.got:
        version, trace, span, flags = request.headers["traceparent"].split("-")
        assert (version, len(trace), len(span), flags) == ("00", 32, 16, "01")
        assert request.headers["x-ldfi-replay"] == "1"
        traces[trace] = request.headers["x-device-id"]
    assert len(traces) == len(staging.got)
    assert {o.trace_id: o.device for o in outcomes} == traces
    assert set(traces.values()) == {f"replay-{n}" for n in range(4)}
    assert all(o.success and o.error_code is None and 0 < o.duration < 5 for o in outcomes)
    kinds = Counter((r.method, r.url.path, r.url.query) for _, r in staging.got)
    assert set(kinds) == {
        ("GET", "/home", "page=2&tag=%2Fa&tag=b"),
        ("HEAD", "/home/ä b", ""),
    }
    shown = {(r.headers["x-device-id"], r.method) for _, r in staging.got}
    assert len(shown) == 8, "every device sends every exemplar"
    assert {r.headers.get("x-device-type") for _, r in staging.got} == {"tv", None}


def test_credentials_and_other_traces_are_never_replayed(staging: Staging) -> None:
    never = {
        "Authorization": "Bearer secret",
        "Proxy-Authorization": "secret",
        "Cookie": "session=secret",
        "X-Api-Key": "secret",
        "X-Auth-Token": "secret",
        "X-CSRF-Token": "secret",
        "X-Amz-Security-Token": "secret",
        "X-Session-Id": "secret",
        "X-Forwarded-For": "secret",
        "Traceparent": "00-secret",
        "Tracestate": "secret",
        "Baggage": "fit=secret",
        "b3": "secret",
        "X-B3-TraceId": "secret",
        "Host": "secret.example",
        "Content-Length": "7",
        "If-None-Match": "secret",
        "X-Device-Id": "secret",
        "X-LDFI-Replay": "secret",
    }
    kept = {"Accept-Language": "de", "X-Device-Type": "tv"}

    replay(Replayer(staging.url, [Exemplar("GET", "/home", "", {**never, **kept})], 100), 1)

    sent = dict(staging.got[0][1].headers)
    assert "secret" not in str(sent)
    assert {"accept-language": "de", "x-device-type": "tv"}.items() <= sent.items()
    assert set(sent) <= {
        *("accept-language", "x-device-type", "host"),
        *("x-ldfi-replay", "x-device-id", "traceparent"),
    }


@pytest.mark.parametrize("rate", [20.0, 100.0])
def test_the_rate_is_never_more_than_was_asked_for(staging: Staging, rate: float) -> None:
    started = time.monotonic()
    sent = replay(Replayer(staging.url, [Exemplar("GET", "/home")], rate), 10, at_most=60.0)
    elapsed = time.monotonic() - started

    assert len(sent) >= 10
    assert len(staging.got) <= rate * elapsed + 1


@pytest.mark.parametrize(("now", "following"), [(5.0, 5.1), (5.09, 5.1), (5.15, 5.25), (9.0, 9.1)])
def test_one_is_due_each_interval_and_what_was_missed_is_not_made_up_for(
    now: float, following: float
) -> None:
    assert _next_slot(5.0, 0.1, now) == pytest.approx(following)


def test_a_device_has_one_request_at_a_time(staging: Staging) -> None:
    replayer = Replayer(staging.url, [Exemplar("GET", "/slow")], 1000, devices=2)

    started = time.monotonic()
    outcomes = replay(replayer, 4, at_most=60.0)

    assert 4 <= len(outcomes) <= 6
    assert time.monotonic() - started >= 0.6  # each answer takes half of that
    assert set(Counter(o.device for o in outcomes)) == {"replay-0", "replay-1"}


@pytest.mark.parametrize("method", ["POST", "DELETE", "put", "G E T", ""])
def test_a_method_that_is_not_declared_safe_is_refused(method: str) -> None:
    with pytest.raises(
        InvalidReplay, match=r"not declared safe.*Declared safe: GET, HEAD, OPTIONS"
    ):
        Replayer("http://127.0.0.1:1", [Exemplar("GET", "/"), Exemplar(method, "/home")], 1)


def test_what_is_declared_safe_is_sent(staging: Staging) -> None:
    exemplar = Exemplar("POST", "/search")

    replay(Replayer(staging.url, [exemplar], 100, safe_methods=("post",)), 1)

    assert staging.got[0][1].method == "POST"


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://127.0.0.1:1", "home"),
        ("http://127.0.0.1:1", "http://elsewhere/"),
        ("http://127.0.0.1:1", "/a\nb"),
        ("http://127.0.0.1:1", "/a?b"),
        ("staging", "/"),
        ("ftp://staging", "/"),
        ("", "/"),
    ],
)
def test_what_cannot_be_sent_is_refused(url: str, path: str) -> None:
    with pytest.raises(InvalidReplay):
        Replayer(url, [Exemplar("GET", path)], 1)


def test_no_path_leaves_the_target(staging: Staging) -> None:
    assert one(staging, "//elsewhere.example/x").success
    assert one(staging, "/@elsewhere.example/x").success
    assert len(staging.got) == 2


@pytest.mark.parametrize(("rate", "devices"), [(0, 1), (-1, 1), (float("nan"), 1), (1, 0)])
def test_a_driver_that_makes_no_sense_is_refused(rate: float, devices: int) -> None:
    with pytest.raises(InvalidReplay):
        Replayer("http://127.0.0.1:1", [Exemplar("GET", "/")], rate, devices)
    with pytest.raises(InvalidReplay, match="nothing to replay"):
        Replayer("http://127.0.0.1:1", [], 1)


def test_without_an_assertion_a_200_may_hide_an_error(staging: Staging) -> None:
    assert one(staging, "/hidden").success
    assert one(staging, "/moved").success
    assert one(staging, "/broken").error_code == "status-500"


def test_an_assertion_sees_what_a_status_hides(staging: Staging) -> None:
    has_rows = Assertion(json_path="$.rows[0].title", equals="new")

    assert one(staging, "/home", assertion=has_rows).success
    assert one(staging, "/hidden", assertion=has_rows).error_code == "json-path"


def test_redirects_are_not_followed(staging: Staging) -> None:
    assert one(staging, "/moved", assertion=Assertion()).error_code == "status-307"
    assert len(staging.got) == 1


def test_no_answer_in_time_and_no_answer_at_all_are_failures(staging: Staging) -> None:
    late = one(staging, "/slow", timeout=0.1)
    nobody = replay(Replayer("http://127.0.0.1:1", [Exemplar("GET", "/")], 100), 1)[0]

    assert (late.success, late.error_code) == (False, "timeout")
    assert late.duration >= 0.1
    assert (nobody.success, nobody.error_code) == (False, "unreachable")


BODY = '{"rows": [{"n": 1, "ok": true}, {"n": 1, "ok": false}], "none": null}'


@pytest.mark.parametrize(
    ("assertion", "expected"),
    [
        (Assertion(), None),
        (Assertion(status=(204, 404)), "status-200"),
        (Assertion(body_contains="rows"), None),
        (Assertion(body_contains="lines"), "body"),
        (Assertion(json_path="$.rows[*].n", equals=1), None),
        (Assertion(json_path="$.rows[*].ok", equals=True), "json-path"),
        (Assertion(json_path="$.rows[0].n", equals=True), "json-path"),
        (Assertion(json_path="$.rows[?@.ok == true].n", equals=1), None),
        (Assertion(json_path="$.rows[7]", equals=None), "json-path"),
        (Assertion(json_path="$.none", equals=None), None),
        (Assertion(json_path="$.none", equals=ANYTHING), "json-path"),
        (Assertion(json_path="$.rows[*].n", equals=ANYTHING), None),
        (Assertion(body_matches='"n": ?1'), None),
        (Assertion(body_matches="^$"), "body"),
        (Assertion(max_seconds=1.0), None),
        (Assertion(max_seconds=0.4), "slow"),
    ],
)
def test_what_an_assertion_makes_of_an_answer(assertion: Assertion, expected: str | None) -> None:
    assert assertion.failure(200, BODY, 0.5) == expected


def test_an_answer_may_be_accepted_and_degraded() -> None:
    assertion = Assertion(degraded_matches='"none": ?null')
    assert assertion.failure(200, BODY, 0.5) is None
    assert assertion.degraded(BODY)
    assert not assertion.degraded('{"rows": []}')
    assert not Assertion().degraded(BODY)
    with pytest.raises(InvalidReplay):
        Assertion(degraded_matches="(")


@given(st.text())
def test_a_body_that_is_no_json_fails_and_raises_nothing(body: str) -> None:
    assert Assertion(json_path="$.rows").failure(200, body, 0.0) == "json-path"


def test_a_body_nested_too_deep_fails_and_raises_nothing() -> None:
    assert Assertion(json_path="$..rows").failure(200, "[" * 100_000, 0.0) == "json-path"
    deep = "[" * 900 + "]" * 900
    assert Assertion(json_path="$..rows").failure(200, deep, 0.0) == "json-path"


def test_a_path_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(InvalidReplay, match=r"'rows\[' is not a JSONPath"):
        Assertion(json_path="rows[")
