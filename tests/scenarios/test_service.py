"""The service hands out scenarios, and shows what became of requests that were replayed."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from ldfi.cli.main import app as ldfi
from ldfi.errors import NotFound
from ldfi.experiments.scheduler.replays import KEPT, SECONDS, Replays
from ldfi.experiments.store.database import Database
from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.run_summary import Runs
from ldfi.lineage.span import Trace
from ldfi.scenarios.scenario import read
from ldfi.testing.spans import span
from tests.experiments.queries.test_scenario_of_finding import BAD, GOOD, LAYOUT, stored
from tests.kit.service import GIVEN, bearer, client_of, problem, service
from tests.scenarios.replayed import TRACE, replayed


@pytest.fixture
def running(sqlite_template: Path, tmp_path: Path) -> Iterator[tuple[httpx.Client, str]]:
    """The service, with a finding on record; its id."""
    url = f"sqlite:///{shutil.copy2(sqlite_template, tmp_path / 'ldfi.sqlite3')}"
    database = Database(url)
    finding = stored(database, Runs(GOOD, BAD))
    database.close()
    with client_of(service(url, quiet=0.1), GIVEN["viewer"]) as client:
        yield client, finding


def test_a_finding_as_a_scenario(running: tuple[httpx.Client, str], tmp_path: Path) -> None:
    client, finding = running
    answer = client.get(f"/api/v1/findings/{finding}/scenario")

    assert answer.status_code == 200, answer.text
    assert answer.json()["faults"] == [f"error@{LAYOUT}"]
    assert answer.json()["version"] == 1
    assert problem(client.get("/api/v1/findings/none/scenario")) == "not-found"

    file = tmp_path / "scenario.yaml"
    service_at = {"LDFI_URL": str(client.base_url), "LDFI_TOKEN": GIVEN["viewer"]}
    words = ["findings", "scenario", finding, "-o", str(file)]
    done = CliRunner().invoke(ldfi, words, env=service_at)
    assert done.exit_code == 0, done.output
    assert read(file).to_json() == answer.json()
    shown = CliRunner().invoke(ldfi, words[:3], env=service_at)
    assert shown.stdout == file.read_text()
    exported = CliRunner().invoke(ldfi, ["export", "curl", finding], env=service_at)
    assert "/boot" in exported.stdout
    assert CliRunner().invoke(ldfi, ["scenario", "check", str(file)]).exit_code == 0
    unknown = CliRunner().invoke(ldfi, ["findings", "scenario", "none"], env=service_at)
    assert isinstance(unknown.exception, NotFound)


def test_a_replayed_request_is_shown_and_is_no_evidence(
    running: tuple[httpx.Client, str],
) -> None:
    client, _ = running
    assert problem(client.get(f"/api/v1/replays/{TRACE}")) == "not-found"
    client.post(
        "/v1/traces", json=replayed(LAYOUT), headers=bearer(GIVEN["ingest"])
    ).raise_for_status()
    end = time.monotonic() + 20
    while (answer := client.get(f"/api/v1/replays/{TRACE}")).status_code == 404:
        assert time.monotonic() < end
        time.sleep(0.1)

    shown = answer.json()
    assert (shown["arm"], shown["service"]) == ("treatment", "api")
    assert shown["fired"] == [f"error@{LAYOUT}"]
    assert shown["calls"] == [{"call": LAYOUT, "failed": True, "fired": ["error"]}]
    assert client.get("/api/v1/classes").json() == []


def _seen(number: int, experiment: str) -> Lineage:
    trace = f"{number:032x}"
    root = span("root", kind="server", trace=trace, experiment=experiment, arm="control")
    learned = learn(Trace.of(trace, [root]))
    assert learned is not None
    return learned


def test_only_so_many_are_kept_and_only_so_long() -> None:
    replays, one, other = Replays(), _seen(1, "s-1"), _seen(2, "s-2")

    assert not replays.take(_seen(0, "e1"), 0.0)
    assert replays.take(one, 0.0)
    assert replays.get(one.trace_id) is one
    assert replays.take(other, SECONDS + 1)
    assert replays.get(one.trace_id) is None
    for number in range(KEPT):
        replays.take(_seen(10 + number, "s-3"), SECONDS + 2)
    assert replays.get(other.trace_id) is None
