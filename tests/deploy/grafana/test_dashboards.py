"""Grafana's dashboards: each panel says what it means, in what, and asks for what there is."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from zoneinfo import ZoneInfo

import pytest
import yaml

from ldfi.experiments.api.metrics import METRICS
from ldfi.experiments.domain.campaign.windows import window_of
from tests.deploy.grafana.scraped import Prometheus, scraped
from tests.deploy.programs import DEPLOY

FOLDER = DEPLOY / "grafana" / "dashboards"

EMPTY_WHERE_ALL_IS_WELL = {"Alerts that fire", "Requests that failed", "Requests of no class"}
"""Panels that have nothing to show while nothing goes wrong; all others must show something."""

STREAMS = "Streams, where there is Kafka"
"""A row whose panels have nothing to show where one process takes spans over HTTP, as here."""

MARKED = {"ldfi: armed", "ldfi: hurt", "ldfi: halted"}

BY_PROMETHEUS = re.compile(r"\b(?:ldfi|process)_\w+")
LABELS = re.compile(r"\{[^}]*\}")


def boards() -> dict[str, dict[str, Any]]:
    return {path.name: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def panels() -> list[tuple[str, dict[str, Any]]]:
    """Every panel that shows something, by the row that it stands in or below."""
    found = []
    for board in boards().values():
        row = ""
        for panel in all_of(board):
            if panel["type"] == "row":
                row = panel["title"]
            else:
                found.append((row, panel))
    assert len(found) > 40
    return found


def all_of(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows and panels, those of folded rows included."""
    for each in board["panels"]:
        yield each
        yield from each.get("panels", [])


def test_no_two_dashboards_and_no_two_panels_of_one_are_confused() -> None:
    uids = [board["uid"] for board in boards().values()]
    assert len(uids) == len(set(uids))
    for name, board in boards().items():
        for what in ("id", "title"):
            values = [panel[what] for panel in all_of(board)]
            assert len(values) == len(set(values)), (name, what)


def test_panels_lie_side_by_side_within_the_page() -> None:
    for name, board in boards().items():
        places = [panel["gridPos"] for panel in all_of(board)]
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


def unit_of(expr: str) -> str:
    """Return Grafana's name of the unit in which this PromQL has its values."""
    bare = LABELS.sub("", expr)
    if re.search(r"/ (?!\d)", bare):
        return "percentunit"
    if "histogram_quantile(" in bare:
        return "s"
    if re.search(r"\brate\(", bare):
        return "short" if "process_cpu_seconds" in bare else "cps"  # cores
    if "increase(" in bare:
        return "short"
    return "bytes" if "_bytes" in bare else "s" if "_seconds" in bare else "short"


def test_every_panel_has_the_unit_of_its_queries() -> None:
    for name, panel in panels():
        unit = panel["fieldConfig"]["defaults"].get("unit")
        if panel["type"] != "state-timeline":  # it shows words
            assert {unit} == {unit_of(each["expr"]) for each in panel["targets"]}, (name, panel)


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with scraped(tmp_path_factory.mktemp("scraped")) as prometheus:
        yield prometheus


@pytest.mark.servers
@pytest.mark.timeout(240)
def test_every_query_is_answered_by_a_prometheus_that_scrapes_the_service(
    beside: Prometheus,
) -> None:
    for name, panel in panels():
        for target in panel["targets"]:
            found = beside.series(target["expr"])
            if panel["title"] not in EMPTY_WHERE_ALL_IS_WELL and name != STREAMS:
                assert any(_has_a_number(series) for series in found), (name, target["expr"])


@pytest.mark.servers
@pytest.mark.timeout(240)
def test_what_ldfi_did_is_marked_on_every_dashboard(beside: Prometheus) -> None:
    for name, board in boards().items():
        marks = {each["name"]: each["expr"] for each in board["annotations"]["list"]}
        assert set(marks) == MARKED, name
        for mark, expr in marks.items():
            assert beside.series(expr), (name, mark, "a campaign was run and halted")


def test_a_dashboard_leads_to_what_was_armed_in_the_time_that_it_shows() -> None:
    for board in boards().values():
        (link,) = [each for each in board["links"] if each["title"] == "Was it us?"]
        shown = {"${pages}": "", "${__from:date:iso}": "2026-11-23T02:10:00.254Z"}
        shown |= {"${__to:date:iso}": "2026-11-23T02:25:00.000Z"}
        url = link["url"]
        for variable, value in shown.items():
            url = url.replace(variable, value)
        asked = dict(parse_qsl(urlsplit(url).query))
        window = window_of(asked["since"], asked["until"], ZoneInfo("UTC"), 2e9, 900)
        assert window.until - window.since == 15 * 60
        assert {each["name"] for each in board["templating"]["list"]} == {"source", "pages"}


def _has_a_number(series: dict[str, Any]) -> bool:
    return any(math.isfinite(float(value)) for _, value in series["values"])


@pytest.mark.servers
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
