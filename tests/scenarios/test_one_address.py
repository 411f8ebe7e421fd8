"""Findings on classes that the path does not tell: Falcor's model, GraphQL over POST.

From real requests to a class, from the class to a scenario file, from the file to a request that
belongs to the class again, and in which the same fault fires.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from typer.testing import CliRunner

from ldfi.cli.main import app
from ldfi.errors import InvalidScenario
from ldfi.experiments.domain.traffic.known_class import KnownClass
from ldfi.experiments.queries.scenario_of_finding import scenario_of
from ldfi.experiments.store.classes import save
from ldfi.experiments.store.database import Database
from ldfi.lineage.run_summary import Run, Runs
from ldfi.scenarios.scenario import read
from tests.experiments.queries.test_scenario_of_finding import stored
from tests.scenarios.one_address import (
    OneAddress,
    failed,
    learned,
    one_address,
    point_of,
)
from tests.scenarios.staging import DEVICE, KEY

VIDEO = ["videos", 123, "title"]
ROWS = ["lolomo", {"to": 3}, "name"]
TV = {"user-agent": "Mozilla/5.0 (SMART-TV; Linux; Tizen 6.0)"}


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[OneAddress]:
    with one_address(KEY, monkeypatch) as running:
        yield running


def model(*paths: list[Any]) -> str:
    return "/model.json?" + "&".join(f"path={quote(json.dumps(each))}" for each in paths)


def operation(name: str) -> dict[str, Any]:
    return {"operationName": name, "query": f"query {name} {{ rows {{ title }} }}"}


def ask(there: OneAddress) -> tuple[list[KnownClass], dict[str, Run]]:
    """Thirty requests of each kind, and of each one that failed: the classes and these runs."""
    requests: list[tuple[str, str, Any]] = [
        ("videos", model(VIDEO), None),
        ("lolomo", model(ROWS), None),
        ("Home", "/graphql", operation("Home")),
        ("Search", "/graphql", operation("Search")),
    ]
    with httpx.Client(base_url=there.url, headers=TV, trust_env=False) as client:
        for _ in range(30):
            for _, target, body in requests:
                assert _send(client, target, body, {}) == 200
        classes = learned(there.lineages(30 * len(requests)))
        for needed, target, body in requests:
            fault = f"error@{point_of(needed)}"
            done = CliRunner().invoke(
                app, ["scenario", "context", fault, "--device", DEVICE], env={"FIT_KEYS": KEY}
            )
            marks = {"x-device-id": DEVICE, "baggage": done.stdout.strip()}
            assert _send(client, target, body, marks) == 502, needed
    runs = [failed(each) for each in there.lineages(len(requests))]
    return classes, {needed: run for (needed, _, _), run in zip(requests, runs, strict=True)}


def _send(client: httpx.Client, target: str, body: Any, headers: dict[str, str]) -> int:
    if body is None:
        return client.get(target, headers=headers).status_code
    return client.post(target, headers=headers, json=body).status_code


def scenario_file(there: OneAddress, database: Database, folder: Path, needed: str) -> Path:
    """The scenario of a finding on the class of these requests."""
    classes, runs = ask(there)
    (known,) = [each for each in classes if each.predicate.holds(runs[needed].features)]
    found = [f"error@{point_of(needed)}"]
    finding = stored(database, Runs(None, runs[needed]), found, request_class=known.name)
    with database.change(2.0) as change:
        save(change, known.name, known.version, known.to_json())
    with database.read() as session:
        text = scenario_of(session, finding).to_yaml()
    file = folder / "finding.yaml"
    file.write_text(text)
    return file


def reproduce(file: Path, there: OneAddress, *words: str) -> tuple[int, dict[str, Any]]:
    there.seen.clear()
    listen = ("--listen", there.otlp, "--quiet", "0.3", "--times", "2", "--json")
    done = CliRunner().invoke(
        app,
        ["reproduce", str(file), "--target", there.url, "--device", DEVICE, *listen, *words],
        env={"FIT_KEYS": KEY, "LDFI_TOKEN": "", "LDFI_URL": "", "COLUMNS": "200"},
    )
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, json.loads(done.stdout)


def test_a_class_of_falcor_paths(there: OneAddress, database: Database, tmp_path: Path) -> None:
    file = scenario_file(there, database, tmp_path, "videos")
    made = read(file)

    assert made.request.query == 'path=["videos","*","title"]'
    with pytest.raises(InvalidScenario, match=r"videos.*has holes"):
        reproduce(file, there)
    assert not there.seen

    with pytest.raises(InvalidScenario, match=r"not a request of .*falcor"):
        reproduce(file, there, "--path", model(ROWS))
    assert not there.seen

    code, said = reproduce(file, there, "--path", model(["videos", 7, "title"]))
    assert (code, said["verdict"]) == (1, "fails"), said
    assert said["fired"] == [f"error@{point_of('videos')}"]
    assert len(there.seen) == 4
    assert all(made.request_class.meant().holds(each) for each in there.seen)


def test_a_class_of_graphql_over_post(
    there: OneAddress, database: Database, tmp_path: Path
) -> None:
    file = scenario_file(there, database, tmp_path, "Home")
    made = read(file)

    assert made.request.body == {"operationName": "Home", "query": "*"}
    with pytest.raises(InvalidScenario, match=r"operationName.*Home.*--data"):
        reproduce(file, there, "--unsafe")
    another, right = tmp_path / "another.json", tmp_path / "home.json"
    another.write_text(json.dumps(operation("Search")))
    right.write_text(json.dumps(operation("Home")))
    with pytest.raises(InvalidScenario, match=r"graphql\.operation is Home"):
        reproduce(file, there, "--unsafe", "--data", str(another))
    assert not there.seen

    code, said = reproduce(file, there, "--unsafe", "--data", str(right))
    assert (code, said["verdict"]) == (1, "fails"), said
    assert said["fired"] == [f"error@{point_of('Home')}"]
    assert all(made.request_class.meant().holds(each.features) for each in there.lineages(4))
