"""What the service tells Prometheus of itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import text as sql

from ldfi.experiments.api import metrics
from ldfi.experiments.cluster.metrics import IN_WORKER
from ldfi.experiments.domain.settings import Limits
from ldfi.experiments.store import campaign_tallies
from ldfi.experiments.store import metrics as stored_metrics
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import (
    DeliveryRow,
    NotificationRow,
)
from ldfi.experiments.telemetry.instruments import Metric
from tests.experiments.members import until
from tests.kit.rows import campaign_row, experiment_row, finding_row
from tests.kit.service import GIVEN, bearer, client_of, service

ALL = tuple(metric for metric in metrics.METRICS if metric not in IN_WORKER)


@pytest.fixture
def app(database_url: str) -> FastAPI:
    return service(database_url, limits=Limits(members_per_hour=70, members_per_day=700))


@pytest.fixture
def client(app: FastAPI) -> Iterator[httpx.Client]:
    with client_of(app, GIVEN["metrics"]) as running:
        yield running


def scraped(client: httpx.Client) -> dict[str, Family]:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {family.name: family for family in text_string_to_metric_families(answer.text)}


def value(families: dict[str, Family], name: str, **labels: str) -> float:
    """The one sample of this name with (at least) these labels."""
    found = [
        sample.value
        for family in families.values()
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    assert len(found) == 1, (name, labels, found)
    return found[0]


def test_what_is_served_is_what_is_documented(client: httpx.Client) -> None:
    client.get("/api/v1/status")
    client.get("/metrics")
    families = scraped(client)

    def of(metric: Metric) -> Family:
        return families[metric.name.removesuffix("_total")]

    served = {name for name in families if name.startswith("ldfi_")}
    created = {name for name in served if name.endswith("_created")}
    assert served - created == {metric.name.removesuffix("_total") for metric in ALL}
    for metric in ALL:
        family = of(metric)
        assert (family.type, family.documentation) == (metric.type, metric.meaning)
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        if metric.name != "ldfi_dropped_total":  # nothing was dropped
            assert labels == set(metric.labels), metric.name


def test_the_names_are_as_prometheus_wants_them() -> None:
    assert len({metric.name for metric in ALL}) == len(ALL)
    for metric in ALL:
        assert metric.name.startswith("ldfi_")
        assert (metric.type == "counter") is metric.name.endswith("_total"), metric.name
        assert metric.type != "histogram" or metric.name.endswith("_seconds"), metric.name


def test_requests_are_counted_by_the_template_of_their_route(client: httpx.Client) -> None:
    route = "/api/v1/campaigns/{campaign_id}"
    before = scraped(client)
    client.get("/api/v1/campaigns/abc", headers=bearer(GIVEN["viewer"]))
    client.get("/api/v1/campaigns/def", headers=bearer(GIVEN["viewer"]))
    client.get("/no/such/path")
    client.request("PROPFIND", "/no/such/path")
    after = scraped(client)

    def more(route: str, status: str, method: str) -> float:
        labels = {"route": route, "status": status, "method": method}
        name = "ldfi_http_requests_total"
        known = any(labels.items() <= s.labels.items() for f in before.values() for s in f.samples)
        return value(after, name, **labels) - (value(before, name, **labels) if known else 0)

    assert more(route, "404", "GET") == 2
    assert more("none", "404", "GET") == 1
    assert more("none", "404", "other") == 1
    assert not any("abc" in s.labels.values() for f in after.values() for s in f.samples)


def test_the_record_is_counted(client: httpx.Client, app: FastAPI) -> None:
    now = time.time()
    database: Database = app.state.database
    tried = [("explore", "harmful", 60, 7), ("explore", "harmful", 7_200, 11)]
    with database.change(now) as change:
        change.session.add(campaign_row())
        for purpose, verdict, ago, members in [*tried, ("confirm", None, 90_000, 13)]:
            state = "decided" if verdict else "aborted"
            of: dict[str, Any] = {"purpose": purpose, "verdict": verdict, "state": state}
            of |= {"created_at": now - ago, "armed_at": now - ago, "ended_at": now - ago + 10}
            of |= {"members_charged": members, "members_hurt": 2}
            change.session.add(experiment_row(f"{members}", **of))
        change.session.add(finding_row(state="regressed"))
        change.session.flush()
        assert campaign_tallies.make_good(change.session)  # nobody ended them

    families = scraped(client)

    assert value(families, "ldfi_database_up") == 1
    assert value(families, "ldfi_campaigns", state="finished") == 1
    assert value(families, "ldfi_campaigns", state="running") == 0
    ended = "ldfi_experiments_ended_total"
    assert value(families, ended, purpose="explore", verdict="harmful") == 2
    assert value(families, ended, purpose="confirm", verdict="none") == 1
    assert value(families, ended, purpose="verify", verdict="tolerated") == 0
    assert value(families, "ldfi_members_charged", window="hour") == 7
    assert value(families, "ldfi_members_charged", window="day") == 18
    assert value(families, "ldfi_members_limit", window="hour") == 70
    assert value(families, "ldfi_members_limit", window="day") == 700
    assert value(families, "ldfi_members_hurt_total") == 6
    assert value(families, "ldfi_findings", state="regressed") == 1


def test_notifications_are_counted_once_for_each_target(database: Database) -> None:
    now = time.time()
    with database.change(now) as change:
        for dealt, error in ((None, None), (now, None), (now, "gone, of an older version")):
            change.session.add(
                NotificationRow(at=now, event="finding", document={}, dealt_at=dealt, error=error)
            )
        for target, end, error in (("a", now, None), ("b", now, "gone"), ("c", None, None)):
            change.session.add(
                DeliveryRow(notification_id=2, target=target, ended_at=end, error=error)
            )

    counted = {each.name: each for each in stored_metrics.of_database(database, Limits(), now)}

    assert value(counted, "ldfi_notifications_waiting") == 2
    assert value(counted, "ldfi_notifications_given_up_total") == 2


def test_what_is_in_memory_is_told(client: httpx.Client) -> None:
    client.get("/api/v1/edge/rules?edge=e1&wait=0", headers=bearer(GIVEN["edge"]))
    client.post("/api/v1/halt", json={"reason": "drill"}, headers=bearer(GIVEN["operator"]))
    metric = {"device": "d", "trace_id": "5b8efff798038103d269b633813fc60c", "outcome": "success"}
    batch = {"metrics": [metric, {"device": ""}]}
    client.post("/api/v1/device-metrics", json=batch, headers=bearer(GIVEN["devices"]))

    families = scraped(client)

    assert value(families, "ldfi_halted") == 1
    assert value(families, "ldfi_edges") == 1
    assert value(families, "ldfi_outcomes_received_total") == 1
    assert value(families, "ldfi_dropped_total", reason="metric_unreadable") == 1
    assert value(families, "ldfi_tick_age_seconds") < 5


def test_time_is_taken_where_it_passes(client: httpx.Client) -> None:
    began, before = time.monotonic(), scraped(client)
    after = before

    def more(name: str, **labels: str) -> float:
        return value(after, name, **labels) - value(before, name, **labels)

    def ticked() -> bool:
        nonlocal after
        after = scraped(client)
        return more("ldfi_tick_seconds_count") >= 3

    until(ticked, 20)
    assert 0 < more("ldfi_tick_seconds_sum") <= time.monotonic() - began
    assert more("ldfi_tick_lag_seconds_count") >= 3
    assert more("ldfi_transaction_seconds_count", kind="read") >= 1
    assert value(after, "ldfi_transaction_seconds_count", kind="write") >= 1


def test_without_a_database_the_rest_is_still_told(client: httpx.Client, app: FastAPI) -> None:
    with app.state.database.change(time.time()) as change:
        change.session.execute(sql("ALTER TABLE finding RENAME TO lost"))
    families = scraped(client)

    assert value(families, "ldfi_database_up") == 0
    assert "ldfi_findings" not in families
    assert value(families, "ldfi_halted") == 0
