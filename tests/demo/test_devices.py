"""The devices: how they judge, what they ask for, how they report."""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
from contextlib import suppress
from itertools import islice
from typing import Any

import httpx
import pytest

from ldfi.demo.devices import add_options, traffic
from ldfi.demo.devices.fleet import Device, arrivals, ask, fleet
from ldfi.demo.devices.judge import judge
from ldfi.demo.devices.pace import LEAST, Pace
from ldfi.demo.devices.report import MOST_KEPT, Metric, Reporter
from ldfi.demo.devices.run import Crowd, Traffic
from ldfi.demo.limits import PATIENCE
from ldfi.demo.worlds import SHOP

HOME: dict[str, Any] = {"profile": {"name": "A"}, "rows": [{"row": "x", "titles": [{"id": 1}]}]}
PLAYER: dict[str, Any] = {"license": {"key": "k"}, "stream": "https://e/1.mpd", "title": {"id": 1}}


@pytest.mark.parametrize(
    ("kind", "status", "body", "verdict"),
    [
        ("boot", 200, HOME, None),
        ("boot", 503, HOME, "http_503"),
        ("boot", 204, HOME, "http_204"),
        ("boot", 200, {**HOME, "error": "sorry"}, "error_in_body"),
        ("boot", 200, {**HOME, "rows": None}, "no_rows"),
        ("boot", 200, {**HOME, "rows": []}, "no_rows"),
        ("boot", 200, {**HOME, "rows": [{"row": "x", "titles": []}]}, "empty_rows"),
        ("boot", 200, {**HOME, "profile": None}, "no_profile"),
        ("boot", 200, [1], "no_json"),
        ("search", 200, {"rows": HOME["rows"], "suggestion": None}, None),
        ("search", 200, {"rows": []}, "no_rows"),
        ("play", 200, PLAYER, None),
        ("play", 200, {**PLAYER, "resume": 0}, None),
        ("play", 200, {**PLAYER, "license": None}, "no_license"),
        ("play", 200, {**PLAYER, "stream": ""}, "no_stream"),
        ("home", 200, {"sections": [{"name": "offers"}]}, None),
        ("home", 200, {"sections": None}, "no_sections"),
        ("checkout", 200, {"total": 37, "delivery": {"days": 2}}, None),
        ("checkout", 200, {"total": 37}, "no_delivery"),
    ],
)
def test_a_screen_that_does_not_come_to_life_is_a_failure(
    kind: str, status: int, body: Any, verdict: str | None
) -> None:
    assert judge(kind, status, json.dumps(body).encode()) == verdict


def test_a_body_that_was_cut_short_is_a_failure() -> None:
    assert judge("boot", 200, b'{"rows": [') == "no_json"


def test_devices_keep_their_identities_and_change_sessions() -> None:
    assert [d.device for d in fleet(3)] == [d.device for d in fleet(5)][:3]
    device = Device("device-0001", "account-0000", "tv")
    sessions = [device.session() for _ in range(41)]
    assert len(set(sessions)) == 3


def test_a_seed_fixes_what_is_asked_for() -> None:
    def asked(seed: int) -> list[Any]:
        chance = random.Random(seed)
        return [ask(kind, chance, 0.5) for kind in ("boot", "play", "search")]

    assert asked(1) == asked(1) != asked(2)


def test_a_trace_is_flagged_in_the_share_that_was_asked_for() -> None:
    chance = random.Random(0)
    parents = [ask("boot", chance, 0.25).traceparent for _ in range(2000)]
    assert all(re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]", p) for p in parents)
    assert 0.2 < sum(p.endswith("01") for p in parents) / 2000 < 0.3


def test_arrivals_come_at_their_rate() -> None:
    moments = list(islice(arrivals(20.0, random.Random(0)), 4000))
    assert moments == sorted(moments)
    assert 4000 / moments[-1] == pytest.approx(20.0, rel=0.1)


def test_what_a_device_saw_is_reported_with_its_trace() -> None:
    # Given an application that refuses, and a control plane that listens
    seen: list[Any] = []

    def application(request: httpx.Request) -> httpx.Response:
        return httpx.Response(503)

    def control(request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == "Bearer secret"
        assert request.url.path == "/api/v1/device-metrics"
        seen.extend(json.loads(request.content)["metrics"])
        return httpx.Response(202)

    # When one device asks
    wanted = ask("boot", random.Random(0), 1.0)

    async def use() -> None:
        app = httpx.AsyncClient(transport=httpx.MockTransport(application), base_url="http://api")
        reporter = _reporter(control)
        await Crowd(app, Traffic(), reporter).use(fleet(1)[0], wanted)
        await reporter.flush()

    asyncio.run(use())

    # Then the report names device, trace, outcome and cause
    (metric,) = seen
    assert metric["device"] == "device-0000"
    assert metric["trace_id"] == wanted.trace_id
    assert (metric["outcome"], metric["error_code"]) == ("failure", "http_503")
    assert metric["duration_ms"] >= 0


def test_reports_wait_while_the_control_plane_is_away_and_the_oldest_are_dropped() -> None:
    answers = [503, 202]

    def control(_: httpx.Request) -> httpx.Response:
        return httpx.Response(answers.pop(0))

    async def report() -> Reporter:
        reporter = _reporter(control)
        for number in range(MOST_KEPT + 7):
            reporter.add(_metric(number))
        await reporter.flush()
        assert (reporter.sent, reporter.dropped) == (0, 7)
        await reporter.flush()
        return reporter

    assert asyncio.run(report()).sent == 1000


def test_a_refused_report_is_not_sent_again() -> None:
    async def report() -> Reporter:
        reporter = _reporter(lambda _: httpx.Response(401))
        reporter.add(_metric(1))
        await reporter.flush()
        await reporter.flush()
        return reporter

    reporter = asyncio.run(report())
    assert (reporter.sent, reporter.dropped) == (0, 1)


@pytest.mark.parametrize(
    ("share", "capacity", "expected"),
    [
        (None, 1.0, 1.0),
        (0.5, 100.0, 1.0),
        (0.5, 80.0, 1.0),
        (0.5, 40.0, 0.5),
        (0.5, 0.0, LEAST),  # nothing was answered in time, and may yet be
    ],
)
def test_no_more_is_asked_for_than_a_share_of_what_the_machine_serves(
    share: float | None, capacity: float, expected: float
) -> None:
    assert Traffic({"boot": 30.0, "play": 10.0}, share=share).paced(capacity) == expected


def test_what_the_machine_serves_is_measured() -> None:
    async def slow(_: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0.1)
        return httpx.Response(200, json=HOME)

    async def measured() -> tuple[float, Crowd]:
        app = httpx.AsyncClient(transport=httpx.MockTransport(slow), base_url="http://app")
        crowd = Crowd(app, Traffic(devices=10), _reporter(lambda _: httpx.Response(202)))
        return await crowd.capacity(), crowd

    capacity, crowd = asyncio.run(measured())
    # Six at a time, each a tenth of a second: sixty at most, and fewer beside other tests.
    assert 2 < capacity <= 63
    # Of all classes, as they are asked for afterwards.
    assert {kind for kind, _ in crowd.seen} == {"boot", "play", "search"}


def test_less_is_asked_of_a_machine_that_answers_late_and_more_again_when_it_has_recovered() -> (
    None
):
    pace = Pace()

    def after(seconds: float, answers: int = 9) -> float:
        for number in range(answers):
            pace.saw(PATIENCE if number % 3 == 0 else seconds)  # of a third nobody answers
        pace.look()
        return pace.share

    assert after(0.05) == 1.0
    slowed = [after(2.0) for _ in range(3)]
    assert slowed == sorted(slowed, reverse=True)
    assert slowed[-1] < 0.3
    assert after(0.4) == slowed[-1]  # neither late nor quick
    assert after(2.0, answers=2) == slowed[-1]  # too few to say anything
    assert min(after(2.5) for _ in range(30)) == LEAST
    assert [after(0.05) for _ in range(60)][-1] == 1.0


def test_who_waits_longer_calls_an_answer_late_later() -> None:
    patient = Pace(patience=4 * PATIENCE)
    for _ in range(9):
        patient.saw(0.9 * PATIENCE)
    patient.look()
    assert patient.share == 1.0


def test_what_is_asked_for_is_said_once_and_a_slow_application_is_asked_less(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[Crowd.__module__], "LOOK_SECONDS", 0.2)

    async def plenty(_: Crowd) -> float:
        return 1000.0

    monkeypatch.setattr(Crowd, "capacity", plenty)

    async def slow(_: httpx.Request) -> httpx.Response:
        await asyncio.sleep(PATIENCE / 3)
        return httpx.Response(200, json=HOME)

    async def asked() -> float:
        app = httpx.AsyncClient(transport=httpx.MockTransport(slow), base_url="http://app")
        traffic = Traffic({"boot": 60.0}, devices=10, share=1.0)
        crowd = Crowd(app, traffic, _reporter(lambda _: httpx.Response(202)))
        with suppress(TimeoutError):
            async with asyncio.timeout(6.0):
                await crowd.run()
        return crowd.pace.share

    share = asyncio.run(asked())
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [{"share": 1.0}]
    assert share < 1.0


def test_devices_take_turns() -> None:
    asked: list[str] = []

    def application(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers["x-device-id"])
        return httpx.Response(200, json=HOME)

    async def run() -> None:
        app = httpx.AsyncClient(transport=httpx.MockTransport(application), base_url="http://app")
        traffic = Traffic({"boot": 500.0}, devices=9)
        crowd = Crowd(app, traffic, _reporter(lambda _: httpx.Response(202)))
        async with asyncio.timeout(20):
            asking = asyncio.create_task(crowd.run())
            while len(asked) < 27:
                await asyncio.sleep(0.01)
            asking.cancel()

    asyncio.run(run())
    assert [len(set(asked[at : at + 9])) for at in (0, 9, 18)] == [9, 9, 9]


def test_rates_are_read_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_options(parser)
    options = parser.parse_args(["--rates", "boot=3,play=0.5", "--seed", "7", "--share", "0.5"])
    assert traffic(options) == Traffic({"boot": 3.0, "play": 0.5}, seed=7, share=0.5)
    options = parser.parse_args(["--world", "shop"])
    assert traffic(options) == Traffic(SHOP.rates, patience=SHOP.patience)
    with pytest.raises(SystemExit):
        parser.parse_args(["--rates", "coffee=1"])
    assert "no class ['coffee']" in capsys.readouterr().err


def _metric(number: int) -> Metric:
    return Metric(f"device-{number}", "account", "0" * 32, "s", "success", None, 1.0)


def _reporter(control: Any) -> Reporter:
    client = httpx.AsyncClient(transport=httpx.MockTransport(control))
    return Reporter(client, "http://control", "secret")
