"""What is odd about how calls are made."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ldfi.analysis.hints import MANY, _side_by_side
from ldfi.analysis.summary import Summary
from tests.analysis.spans import Made, analysed, asked, entered


def reasons(summary: Summary, name: str) -> str:
    return "; ".join(r for item in summary.red if name in item.points for r in item.reasons)


def test_a_probe_that_falls_with_a_leaf_is_named(tmp_path: Path) -> None:
    # Given a readiness probe that asks ratings, which falls twice, through a service in between
    inner = Made("home", 1, kind=2, path="/up", start=2, end=8)
    leaf = Made("home", 2, host="ratings", path="/up", start=3, end=4)
    good = [entered("/readyz"), asked("home", 1, 9), inner, leaf]
    bad = [entered("/readyz", failed=True)] + [
        Made(m.service, m.within, m.kind, m.path, m.host, True, m.start, m.end) for m in good[1:]
    ]
    summary = analysed(tmp_path, [good] * 6 + [bad] * 2).gist
    # Then the leaf is named, and how often the probe fell with it
    said = reasons(summary, "home>http:GET:ratings/up")
    assert "the probe GET /readyz of api asks it and failed 2 of 8 times with it" in said
    assert "the probe" not in reasons(summary, "api>http:GET:home/")


@pytest.mark.parametrize(
    ("path", "probe"),
    [
        ("/healthz", True),
        ("/actuator/health/readiness", True),
        ("/-/ready", True),
        ("/orders/ready-made", False),
        ("/health-food", False),
        ("/home", False),
    ],
)
def test_probes_are_known_by_their_paths(path: str, probe: bool, tmp_path: Path) -> None:
    summary = analysed(tmp_path, [[entered(path), asked("ratings")]] * 6).gist
    assert ("the probe" in reasons(summary, "api>http:GET:ratings/")) == probe


def test_retries_that_never_help_are_named(tmp_path: Path) -> None:
    tries = [asked("cards", 10 * i, 10 * i + 5, failed=True) for i in range(3)]
    summary = analysed(tmp_path, [[entered("/pay", failed=True), *tries]] * MANY).gist
    assert f"in {MANY} requests it was called again" in reasons(summary, "api>http:GET:cards/")


def test_retries_that_helped_once_are_not(tmp_path: Path) -> None:
    tries = [asked("cards", 10 * i, 10 * i + 5, failed=True) for i in range(3)]
    helped = [[entered("/pay"), tries[0], asked("cards", 20, 25)]]
    summary = analysed(tmp_path, [[entered("/pay", failed=True), *tries]] * MANY + helped).gist
    assert "called again" not in reasons(summary, "api>http:GET:cards/")


def test_calls_side_by_side_are_no_retries(tmp_path: Path) -> None:
    tries = [asked("cards", i, 9, failed=True) for i in range(3)]
    summary = analysed(tmp_path, [[entered("/pay", failed=True), *tries]] * MANY).gist
    assert "called again" not in reasons(summary, "api>http:GET:cards/")


def test_ten_calls_for_ten_things_are_no_retries(tmp_path: Path) -> None:
    # Given ten calls one after the other, as in requests that go well; and three workers' calls
    loop = [asked("cards", 10 * i, 10 * i + 5, failed=True) for i in range(10)]
    well = [asked("cards", 10 * i, 10 * i + 5) for i in range(10)]
    pool = [asked("deals", 200 + 4 * i, 210 + 4 * i, failed=True) for i in range(10)]
    down, up = [entered("/pay"), *loop, *pool], [entered("/pay"), *well]
    summary = analysed(tmp_path, [*[down] * MANY, up]).gist
    assert "called again" not in str(summary.red)
    # When there are more of them than usual, they are
    more = [*down, asked("cards", 500, 505, failed=True)]
    summary = analysed(tmp_path, [*[more] * MANY, up]).gist
    assert f"in {MANY} requests it was called again" in reasons(summary, "api>http:GET:cards/")


def test_a_service_without_client_spans_is_named(tmp_path: Path) -> None:
    # Given that the span of the callee hangs directly below that of its caller
    served = Made("ratings", 0, kind=2, path="/titles", start=2, end=4)
    summary = analysed(tmp_path, [[entered("/home"), served]] * 6).gist
    assert reasons(summary, "api") == "it exports no client span of its 6 calls to ratings"


def test_a_call_with_both_its_spans_is_not(tmp_path: Path) -> None:
    served = Made("ratings", 1, kind=2, path="/titles", start=2, end=4)
    summary = analysed(tmp_path, [[entered("/home"), asked("ratings", 1, 5), served]] * 6).gist
    assert reasons(summary, "api") == ""


def _adrift(service: str = "ratings") -> Made:
    """The span of a callee whose parent never came."""
    return Made(service, 77, kind=2, path="/titles", start=2, end=4)


@pytest.mark.parametrize("whole", [0, 6])
def test_a_gateway_whose_client_spans_never_come_is_named(whole: int, tmp_path: Path) -> None:
    # Given a gateway that passes the context on and exports nothing of its calls, alone or beside
    # requests whose traces are whole
    other = [Made("shop", kind=2, path="/cart", end=9), Made("shop", 0, host="cards")]
    summary = analysed(tmp_path, [[entered("/home"), _adrift()]] * 4 + [other] * whole).gist
    assert reasons(summary, "api") == "it exports no client span of its 4 calls to ratings"
    assert {each.name: each.standing for each in summary.services}.get("api") in {"silent", None}


def test_a_span_lost_on_its_way_makes_nobody_silent(tmp_path: Path) -> None:
    # Given that the gateway's client spans came in five requests of six
    served = Made("ratings", 1, kind=2, path="/titles", start=2, end=4)
    whole = [entered("/home"), asked("ratings", 1, 5), served]
    summary = analysed(tmp_path, [whole] * 5 + [[entered("/home"), _adrift()]]).gist
    assert reasons(summary, "api") == ""


def test_a_request_of_somebody_else_in_the_trace_is_no_call(tmp_path: Path) -> None:
    # Given two requests that one client made under a context of its own, which never came
    first = Made("api", 77, kind=2, path="/home", start=0, end=9)
    summary = analysed(tmp_path, [[first, _adrift()]] * 4).gist
    assert reasons(summary, "api") == ""


def test_requests_that_fall_without_any_call_say_that_something_is_not_seen(
    tmp_path: Path,
) -> None:
    requests = [[entered("/home")]] * 6 + [[entered("/home", failed=True)]]
    said = reasons(analysed(tmp_path, requests).gist, "api")
    assert "7 requests of GET /home show no call at all, and 1 of them failed" in said
    assert "it makes none, or exports no client spans" in said


def test_requests_that_went_well_without_any_call_say_nothing(tmp_path: Path) -> None:
    assert analysed(tmp_path, [[entered("/home")]] * 6).gist.red == ()


HOSTS = ("ads", "basket", "cards", "deals")


def test_a_fan_out_without_fallback_is_one_item(tmp_path: Path) -> None:
    wide = [entered("/home"), *(asked(host, 1, 9) for host in HOSTS)]
    summary = analysed(tmp_path, [wide] * 6).gist
    (item,) = summary.red
    assert item.name == "ads, basket, cards and deals"
    assert "api makes up to 4 calls side by side and needs every one" in item.reasons[0]


@pytest.mark.parametrize("survived", [True, False])
def test_calls_in_a_row_or_survived_are_no_fan_out(survived: bool, tmp_path: Path) -> None:
    # Given calls that are all needed but made one by one, or side by side and survived
    if survived:
        wide = [entered("/home"), *(asked(host, 1, 9) for host in HOSTS[:3])]
        without = [entered("/home"), *(asked(h, 1, 9, failed=True) for h in HOSTS[:3])]
        requests = [wide] * 6 + [without]
    else:
        row = [asked(host, 10 * i, 10 * i + 10) for i, host in enumerate(HOSTS)]
        requests = [[entered("/home"), *row]] * 6
    assert analysed(tmp_path, requests).gist.red == ()


def test_very_many_calls_at_once_are_gone_through_once() -> None:
    calls: list[Any] = [SimpleNamespace(start=0, end=1) for _ in range(20_000)]
    began = time.process_time()

    assert [len(each) for each in _side_by_side(calls)] == [20_000]
    assert time.process_time() - began < 2
