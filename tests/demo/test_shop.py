"""The shop: what each service does without what it calls, and that only what is planted hurts."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from ldfi.demo import repairs
from ldfi.demo.devices.judge import judge
from ldfi.demo.worlds import SHOP
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.points import Point

ROOT = Path(__file__).parents[2] / "ldfi" / "demo" / "shop"
WEAKNESSES: list[dict[str, Any]] = json.loads((ROOT / "weaknesses.json").read_text())
EDGES = {
    "home": [("shop", each) for each in ("layout", "offers", "offers-cache", "prices")],
    "checkout": [("shop", "stock"), ("stock", "stockdb")],
}


def served(shop: Any, kind: str, failing: set[tuple[str, str]]) -> bool:
    answer = shop.get(f"http://shop/{kind}", failing)
    return judge(kind, answer.status_code, answer.content) is None


@pytest.mark.parametrize("service", SHOP.names)
def test_every_service_says_that_it_lives(service: str, shop: Any) -> None:
    assert shop.get(f"http://{service}/healthz").text == "ok"


def test_seven_services_share_three_processes_and_one_of_each_calls_others() -> None:
    assert (len(SHOP.names), len(SHOP.processes)) == (7, 3)
    callers = {caller for edges in EDGES.values() for caller, _ in edges}
    assert callers == {"shop", "stock"} <= {together[0] for together in SHOP.processes}


@pytest.mark.parametrize("kind", EDGES)
def test_of_all_calls_and_pairs_of_calls_only_the_planted_ones_hurt(kind: str, shop: Any) -> None:
    hurtful: list[set[tuple[str, str]]] = []
    for size in (1, 2):
        for tried in map(set, combinations(EDGES[kind], size)):
            if not served(shop, kind, tried) and not any(known <= tried for known in hurtful):
                hurtful.append(tried)

    planted = [each["faults"] for each in WEAKNESSES if each["class"] == f"GET /{kind}"]
    assert sorted(map(sorted, hurtful)) == sorted(sorted(map(edge, faults)) for faults in planted)


def edge(fault: str) -> tuple[str, str]:
    """Of a planted fault; the one database has one caller."""
    kind, _, rest = fault.partition("@")
    if kind == "down":
        return "stock", rest
    point = Point.parse(Fault.parse(fault).point)
    assert str(point) == rest
    return point.caller, point.peer


def test_either_table_will_do_and_neither_will_not(shop: Any) -> None:
    stock = "http://stock/stock"
    assert shop.get(stock).json() == {"known": True, "days": 2}
    assert shop.get(stock, {("stock", "stockdb")}).json() == {"known": False, "days": None}


@pytest.mark.parametrize("weakness", WEAKNESSES, ids=lambda each: str(each["name"]))
def test_each_weakness_can_be_repaired(
    weakness: dict[str, Any], shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = weakness["class"].removeprefix("GET /")
    failing = set(map(edge, weakness["faults"]))
    assert not served(shop, kind, failing)
    monkeypatch.setattr(repairs, "_repaired", {weakness["name"]})
    assert served(shop, kind, failing)
