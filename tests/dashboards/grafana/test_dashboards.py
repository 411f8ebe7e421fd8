"""The dashboards: in step with their JSON, well laid out, and every query answered for real."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest
import yaml

from ldfi.dashboards.grafana import __main__ as grafana
from ldfi.dashboards.grafana import service
from ldfi.dashboards.grafana.board import as_json
from ldfi.experiments.api.metrics import METRICS
from tests.dashboards.grafana.scraped import Prometheus, scraped
from tests.deploy.programs import DEPLOY

FOLDER = DEPLOY / "grafana" / "dashboards"

EMPTY_WHERE_ALL_IS_WELL = {"Alerts that fire", "Requests that failed", "Requests of no class"}
"""Panels that have nothing to show while nothing goes wrong; all others must show something."""

WITHOUT_KAFKA = {panel.build().title for panel in service.STREAMS}
"""Panels that have nothing to show where one process takes spans over HTTP, as here."""

BY_PROMETHEUS = re.compile(r"\b(?:ldfi|process)_\w+")


def boards() -> dict[str, dict[str, Any]]:
    return {path.name: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def panels() -> list[tuple[str, dict[str, Any]]]:
    return [
        (name, panel)
        for name, board in boards().items()
        for panel in board["panels"]
        if panel["type"] != "row"
    ]


def test_the_committed_json_is_what_the_code_says() -> None:
    written = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    made = {name: as_json(dashboard) for name, dashboard in grafana.FILES.items()}
    assert written == made, "run `make grafana` and commit what it writes"


def test_no_two_dashboards_and_no_two_panels_of_one_are_confused() -> None:
    uids = [board["uid"] for board in boards().values()]
    assert len(uids) == len(set(uids))
    for name, board in boards().items():
        for what in ("id", "title"):
            values = [panel[what] for panel in board["panels"]]
            assert len(values) == len(set(values)), (name, what)


def test_panels_lie_side_by_side_within_the_page() -> None:
    for name, board in boards().items():
        places = [panel["gridPos"] for panel in board["panels"]]
        for place in places:
            assert place["x"] + place["w"] <= 24, (name, place)
        for one, other in combinations(places, 2):
            assert not _overlap(one, other), (name, one, other)


def _overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    return all(
        one[at] < other[at] + other[size] and other[at] < one[at] + one[size]
        for at, size in (("x", "w"), ("y", "h"))
    )


def test_every_panel_says_what_it_means_and_asks_for_metrics_that_there_are() -> None:
    described = METRICS
    known = {m.name for m in described} | {
        f"{m.name}_bucket" for m in described if m.type == "histogram"
    }
    for name, panel in panels():
        assert panel["description"], (name, panel["title"])
        for target in panel["targets"]:
            asked = set(BY_PROMETHEUS.findall(target["expr"]))
            assert {each for each in asked if each.startswith("ldfi_")} <= known, target["expr"]


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with scraped(tmp_path_factory.mktemp("scraped")) as prometheus:
        yield prometheus


@pytest.mark.timeout(240)
def test_every_query_is_answered_by_a_prometheus_that_scrapes_the_service(
    beside: Prometheus,
) -> None:
    for name, panel in panels():
        for target in panel["targets"]:
            found = beside.series(target["expr"])
            if panel["title"] not in EMPTY_WHERE_ALL_IS_WELL | WITHOUT_KAFKA:
                assert any(_has_a_number(series) for series in found), (name, target["expr"])


def _has_a_number(series: dict[str, Any]) -> bool:
    return any(math.isfinite(float(value)) for _, value in series["values"])


@pytest.mark.timeout(240)
def test_prometheus_evaluates_every_alert_rule(beside: Prometheus) -> None:
    rules = beside.rules()
    assert rules
    for rule in rules:
        assert rule["health"] == "ok", (rule["name"], rule.get("lastError"))
        assert rule["state"] != "firing", rule["name"]


def test_compose_provisions_the_folder() -> None:
    stack = yaml.safe_load((DEPLOY.parent / "compose.yaml").read_text())
    provider = yaml.safe_load((DEPLOY / "grafana/provisioning/dashboards/ldfi.yml").read_text())
    inside = provider["providers"][0]["options"]["path"]
    assert f"./deploy/grafana/dashboards:{inside}:ro" in stack["services"]["grafana"]["volumes"]
