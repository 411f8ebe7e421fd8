"""What becomes of a finding on record: a scenario, and one without anybody's secrets."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ldfi.errors import InvalidScenario, NotFound
from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.experiments.domain.traffic.known_class import LearnedClass
from ldfi.experiments.queries.scenario_of_finding import scenario_of
from ldfi.experiments.store.classes import save
from ldfi.experiments.store.database import Database
from ldfi.fit.protocol.features import request_features
from ldfi.fit.protocol.points import http_point
from ldfi.fit.protocol.predicate import Condition, Predicate
from ldfi.lineage.run_summary import Run, RunCall, Runs
from tests.experiments.simulated import a_class
from tests.kit.rows import campaign_row, experiment_row, finding_row
from tests.scenarios.requests import IDENTIFYING, NEUTRAL, formed

LAYOUT = "api>http:GET:layout/layout"
INNER = "layout>db:SELECT:layoutdb/rows"
TRACE = "0af7651916cd43dd8448eb211c80319c"
_ids = itertools.count()


def run(
    *calls: RunCall, success: bool = True, features: Mapping[str, str] | None = None, **facts: Any
) -> Run:
    given = {"error_code": None, "duration": 0.1, **facts}
    asked = features or request_features("GET", "/boot", "", [("x-device-type", "tv")])
    return Run(TRACE, success, calls=calls, features=asked, **given)


def call(point: str, within: int | None = None, *fired: str, failed: bool = False) -> RunCall:
    return RunCall(point, "", within, failed or bool(fired), fired, 0.0, 0.1)


GOOD = run(call(LAYOUT), call(INNER, 0))
BAD = run(call(LAYOUT, None, "error"), success=False, error_code="http_503", root_failed=True)


def stored(
    database: Database,
    runs: Runs,
    faults: list[str] | None = None,
    injected: list[str] | None = None,
    request_class: str = "GET /boot",
    **experiment: Any,
) -> str:
    """A finding on record, and the experiment that convicted it; the id of the finding."""
    number = next(_ids)
    hypothesis = faults or [f"error@{LAYOUT}"]
    counts = {
        "control": {"devices": 20, "failures": 0},
        "treatment": {"devices": 10, "failures": 10},
    }
    of = {"campaign_id": f"c{number}", "request_class": request_class}
    convicted = {"verdict": "harmful", "ended_at": float(number), "comparison": counts}
    convicted |= {"faults": injected or hypothesis, "lesson": {"runs": runs.to_json()}}
    found = {"found_at": 1_790_000_000.0, "experiment_id": "another", "traces": [TRACE]}
    rows = [
        campaign_row(f"c{number}", definition={"settings": {"delay": 3.0}}),
        experiment_row(f"e{number}", hypothesis, purpose="confirm", **of | convicted | experiment),
        finding_row(f"f{number}", hypothesis, **of | found),
    ]
    with database.change(1_790_000_000.0) as change:
        change.session.add_all(rows)
    return f"f{number}"


def document(database: Database, finding: str) -> dict[str, Any]:
    with database.read() as session:
        return scenario_of(session, finding).to_json()


def test_a_finding_becomes_a_scenario(database: Database) -> None:
    made = document(database, stored(database, Runs(GOOD, BAD)))

    number = made["id"].removeprefix("f")
    assert made["title"] == f"GET /boot fails with error at {LAYOUT}"
    headers = {"accept": "application/json", "x-device-type": "tv"}
    assert made["request"] == {"method": "GET", "path": "/boot", "headers": headers}
    assert made["faults"] == [f"error@{LAYOUT}"]
    assert made["delay"] == 3.0
    assert made["seen"] == {
        "error_code": "http_503",
        "seconds": 0.1,
        "control": {"devices": 20, "failures": 0},
        "treatment": {"devices": 10, "failures": 10},
    }
    assert made["lineage"] == {
        "expected": [{"call": LAYOUT, "calls": [{"call": INNER}]}],
        "observed": [{"call": LAYOUT, "failed": True, "fired": ["error"]}],
    }
    assert made["evidence"] == {
        "finding": made["id"],
        "state": "open",
        "campaign": f"c{number}",
        "experiment": f"e{number}",
        "traces": [TRACE],
    }
    assert made["environment"]["found"] == "2026-09-21T14:13:20Z"
    assert "expect" not in made


def test_a_system_that_is_down_is_an_error_at_each_of_its_points(database: Database) -> None:
    points = [f"error@{LAYOUT}", f"error@{INNER}"]
    made = document(database, stored(database, Runs(GOOD, BAD), ["down@db"], points))

    assert made["faults"] == sorted(points)
    assert made["hypothesis"] == ["down@db"]
    assert made["title"] == "GET /boot fails with db down"


def test_a_system_of_which_nobody_knows_the_points_is_refused(database: Database) -> None:
    finding = stored(database, Runs(), ["down@db"], verdict="tolerated")

    with database.read() as session, pytest.raises(InvalidScenario, match="findings verify"):
        scenario_of(session, finding)


def test_what_the_status_does_not_show_the_time_may(database: Database) -> None:
    slow = run(call(LAYOUT, None, "delay"), success=False, error_code="timeout", duration=2.5)

    assert document(database, stored(database, Runs(GOOD, slow)))["expect"] == {"max_seconds": 1.3}


def test_what_neither_shows_is_hidden(database: Database) -> None:
    empty = run(call(LAYOUT, None, "error"), success=False, error_code="no_rows")

    assert document(database, stored(database, Runs(GOOD, empty)))["expect"] == {"hidden": True}


def test_a_finding_without_runs_is_still_a_scenario(database: Database) -> None:
    made = document(database, stored(database, Runs()))

    accept = {"accept": "application/json"}
    assert made["request"] == {"method": "GET", "path": "/", "headers": accept}
    assert "lineage" not in made


def test_an_unknown_finding(database: Database) -> None:
    with database.read() as session, pytest.raises(NotFound):
        scenario_of(session, "none")


def test_a_key_of_the_class_adds_no_parameter(database: Database) -> None:
    features = request_features("GET", "/model.json", 'path=["a%26b=1","c"]')
    predicate = Predicate.of(Condition(name, value) for name, value in features.items())
    name = "GET /model.json of a&b"
    known = replace(a_class(Traffic(), name), request_class=LearnedClass(predicate, "root", name))
    bad = run(call(LAYOUT, None, "error"), success=False, features=features)
    finding = stored(database, Runs(GOOD, bad), request_class=name)
    with database.change(2.0) as change:
        save(change, name, known.version, known.to_json())

    made = document(database, finding)["request"]

    assert made["query"] == 'path=["a%26b=1","c"]'
    assert request_features(made["method"], made["path"], made["query"]) == features


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    secrets=st.lists(formed, min_size=1, max_size=3),
    names=st.lists(st.sampled_from([*NEUTRAL, *IDENTIFYING]), max_size=3),
    message=st.booleans(),
)
def test_no_secret_survives_in_any_scenario(
    database: Database, secrets: list[str], names: list[str], message: bool
) -> None:
    path = "/titles/" + "/".join(each.replace("/", "").replace(" ", "%20") for each in secrets)
    query = "&".join(f"{name}={each}" for name, each in zip(names, secrets, strict=False))
    point = http_point("api", "GET", "users", 443, path)
    features = request_features("GET", path, query, [("x-device-type", secrets[0])])
    code = f"failed for {secrets[0]}" if message else secrets[0]
    bad = run(call(point, None, "error"), success=False, features=features, error_code=code)
    finding = stored(database, Runs(GOOD, bad), [f"error@{point}"])

    with database.read() as session:
        text = scenario_of(session, finding).to_yaml().casefold()

    for secret in secrets:
        assert secret.casefold() not in text
