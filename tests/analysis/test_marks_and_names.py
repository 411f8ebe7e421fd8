"""What the report says of requests whose spans say little, or say it in an odd way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ldfi.analysis.analysis import analyze
from ldfi.analysis.report import Analysis
from tests.lineage.formats import WRITERS, Made, otlp_json

ASKED = {"http.request.method": "POST", "url.path": "/checkout"}
LOST = {**ASKED, "http.response.status_code": 504}
GRPC = {"rpc.system.name": "grpc", "rpc.method": "shop.Cart/Get"}


def report(folder: Path, *bodies: bytes) -> Analysis:
    for number, body in enumerate(bodies):
        (folder / f"{number}").write_bytes(body)
    return analyze([folder])


def requests(many: Sequence[tuple[Made, ...]]) -> list[bytes]:
    """Write requests as traces of their own."""
    return [
        otlp_json([Made(**{**vars(made), "trace": f"{n:032x}"}) for made in spans])
        for n, spans in enumerate(many, start=1)
    ]


def masked(code: int, call: dict[str, Any], answer: dict[str, Any], until: int) -> list[Made]:
    """A request that was lost to a call that hung: the proxy gave up, the callee went on."""
    return [
        Made(1, 99, "proxy", "server", "POST", (0, 1000), {**LOST, "http.status_code": str(code)}),
        Made(2, 1, "proxy", "client", "egress pay", (1, 999), call),
        Made(3, 2, "pay", "server", "POST /pay", (2, until), answer),
    ]


@pytest.mark.parametrize(
    ("call", "answer", "until"),
    [
        ({}, {"http.response.status_code": 499}, 998),
        ({"error": True, "http.status_code": "0"}, {"http.response.status_code": 200}, 1500),
        ({"error.type": "timeout"}, {"http.response.status_code": 200}, 1500),
        ({"canceled": "true", "error": "true", "http.status_code": "0"}, {}, 1000),
        ({}, {"http.response.status_code": 200}, 1500),
        ({"http.response.status_code": 200, "error": "true"}, {}, 900),
    ],
)
def test_a_call_that_carries_a_mark_is_at_least_suspected_alike_in_all_formats(
    tmp_path: Path, call: dict[str, Any], answer: dict[str, Any], until: int
) -> None:
    said = []
    for form, write in WRITERS.items():
        folder = tmp_path / form
        folder.mkdir()
        summary = report(folder, write(masked(504, call, answer, until))).gist
        said.append((summary.headline, summary.lost, summary.red))
        assert [each.service for each in summary.lost] == ["pay"]
        assert summary.unexplained == 0
    assert all(each == said[0] for each in said)


def test_a_refused_call_has_no_address_and_is_the_same_call(tmp_path: Path) -> None:
    # Given a call by procedure to two replicas, and one that was refused, which says no address
    web = Made(
        1, 0, "web", "server", "GET", (0, 9), {"http.request.method": "GET", "url.path": "/"}
    )
    good = [
        (
            web,
            Made(
                2, 1, "web", "client", "Get", (1, 5), {**GRPC, "server.address": f"10.0.0.{n % 2}"}
            ),
        )
        for n in range(8)
    ]
    refused = Made(2, 1, "web", "client", "Get", (1, 2), GRPC, "ERROR")
    lost = (Made(**{**vars(web), "status": "ERROR"}), refused)
    # Then one point is needed, and it is the one that was refused
    analysis = report(tmp_path, *requests([*good, lost, lost]))
    (only,) = analysis.classes
    (item,) = analysis.gist.red
    assert item.points == ("web>rpc:Get:10.0.0.0/shop.Cart",)
    assert {edge.point for edge in only.edges} == {*item.points}


def test_pages_that_differ_by_identifiers_are_one_class(tmp_path: Path) -> None:
    # Given pages of ids, one of which has no digit
    ids = ["OLJCESPC7Z", "66VCHSJNUP", "1YMWWN1N4O", "L9ECAV7KIM", "QWERTYUIOP"]
    said = {"http.request.method": "GET", "http.response.status_code": 200}
    many = [
        (
            Made(1, 0, "web", "server", "GET", (0, 9), {**said, "url.path": f"/product/{each}"}),
            Made(2, 1, "web", "client", "GET", (1, 5), {**said, "url.full": "http://cart/x"}),
        )
        for each in ids * 20
    ]
    assert [each.name for each in report(tmp_path, *requests(many)).classes] == ["GET /product/*"]


def test_only_a_route_tells_classes_apart(tmp_path: Path) -> None:
    many = [
        (
            Made(
                1,
                0,
                "web",
                "server",
                "GET",
                (0, 9),
                {"http.request.method": "GET", "http.route": r},
            ),
            Made(2, 1, "web", "client", "x", (1, 5)),
        )
        for r in ("/orders", "/carts", "/users/{id}") * 6
    ]
    found = {each.name for each in report(tmp_path, *requests(many)).classes}
    assert found == {"GET /orders", "GET /carts", "GET /users/*"}


def test_spans_of_a_callee_under_the_kind_of_its_caller_are_its_own(tmp_path: Path) -> None:
    spans = [Made(1, 0, "checkout", "server", "shop/PlaceOrder", (0, 200), status="ERROR")]
    for number, callee in enumerate(("cart", "payment", "email")):
        status = "" if callee == "cart" else "ERROR"
        at = (5 + 60 * number, 45 + 60 * number)
        spans += [
            Made(10 + number, 1, "checkout", "client", callee, at, status=status),
            Made(
                20 + number,
                10 + number,
                callee,
                "client",
                callee,
                (at[0] + 2, at[1] - 2),
                status=status,
            ),
        ]
    summary = report(tmp_path, otlp_json(spans)).gist
    assert "4 services" in summary.lead
    assert {each.service for each in summary.lost} <= {"payment", "email"}


def test_attempts_below_one_call_are_told(tmp_path: Path) -> None:
    attempts = [
        Made(3 + n, 2, "pay", "server", "x", (2 + n, 3 + n), status=s)
        for n, s in enumerate(("ERROR", "ERROR", "OK"))
    ]
    spans = [
        Made(1, 0, "web", "server", "GET /x", (0, 99)),
        Made(2, 1, "web", "client", "pay", (1, 90)),
    ]
    (item,) = report(tmp_path, otlp_json([*spans, *attempts])).gist.red
    assert "answered up to 3 times" in item.reasons[0]
    assert "2 of these attempts failed" in item.reasons[0]


@pytest.mark.parametrize("form", WRITERS)
def test_what_times_are_not_known_is_told(tmp_path: Path, form: str) -> None:
    spans = [
        Made(1, 0, "web", "server", "GET /x", None),
        Made(2, 1, "web", "client", "pay", (1, 5)),
    ]
    analysis = report(tmp_path, WRITERS[form](spans))
    assert any("1 span did not say when" in note for note in analysis.notes)


def test_a_second_parent_is_told(tmp_path: Path) -> None:
    trace = json.loads(
        WRITERS["jaeger"]([Made(n, n > 1, "web", "", "x", (n, 9)) for n in (1, 2, 3)])
    )
    span = trace["data"][0]["spans"][2]
    span["references"].append({**span["references"][0], "spanID": f"{2:016x}"})
    analysis = report(tmp_path, json.dumps(trace).encode())
    assert any("1 span named more than one parent" in note for note in analysis.notes)


def test_what_exports_telemetry_is_left_out_and_counted(tmp_path: Path) -> None:
    said = {"http.request.method": "POST", "url.full": "http://collector:4318/v1/traces"}
    web = Made(1, 0, "web", "server", "GET /x", (0, 9))
    exporter = Made(1, 0, "web", "client", "POST", (0, 9), said)
    analysis = report(tmp_path, *requests([(web,), (exporter,), (exporter,)]))
    assert [each.name for each in analysis.classes] == ["GET /x"]
    assert analysis.skipped == {"request that exports telemetry": 2}


def test_an_orphan_in_plain_json_keeps_its_proof(tmp_path: Path) -> None:
    # Given a request in which publishing failed: the span around it was never exported
    fired = {"db.system": "redis", "fit.point": "shop>db:LPUSH:queue", "fit.fired": "error"}
    spans = [
        Made(1, 9, "shop", "server", "POST /pay", (0, 9), {"http.status_code": 500}, "ERROR"),
        Made(2, 7, "shop", "client", "LPUSH", (1, 2), fired, "ERROR"),
    ]
    summary = report(tmp_path, WRITERS["plain"](spans)).gist
    assert [(each.service, each.seen) for each in summary.lost] == [("queue", 1)]
