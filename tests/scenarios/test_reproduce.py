"""``ldfi reproduce`` against a staging system that nobody watches: only the key is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from ldfi.cli.main import app
from ldfi.errors import Invalid, InvalidScenario
from ldfi.fit.protocol.errors import KeyFormatError
from tests.scenarios.staging import DEVICE, KEY, LAYOUT, LICENSE, Staging, scenario_file


def reproduce(
    file: Path | str, target: str, *words: str, keys: str = KEY
) -> tuple[int, dict[str, Any], str]:
    """Exit code, document and what was said besides."""
    done = CliRunner().invoke(
        app,
        ["reproduce", str(file), "--target", target, "--device", DEVICE, *words],
        env={"FIT_KEYS": keys, "LDFI_TOKEN": "", "LDFI_URL": "", "COLUMNS": "200"},
    )
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, json.loads(done.stdout) if "--json" in words else {}, done.output


def test_it_fails_until_it_is_repaired(target: Staging, tmp_path: Path) -> None:
    file = scenario_file(tmp_path)
    seen = ("--listen", target.otlp, "--quiet", "0.3", "--json")

    code, broken, _ = reproduce(file, target.url, *seen)
    assert (code, broken["verdict"]) == (1, "fails")
    assert broken["fired"] == [LICENSE]
    assert [(each["faults"], each["status"]) for each in broken["attempts"]] == [
        (False, 200),
        (True, 502),
    ] * 3
    row = next(each for each in broken["lineage"] if each["call"] == LICENSE.partition("@")[2])
    assert (row["without"], row["with"]) == ("ok", "error injected")

    target.repaired = True
    code, repaired, _ = reproduce(file, target.url, *seen)
    assert (code, repaired["verdict"]) == (0, "fixed")
    assert repaired["fired"] == [LICENSE]


def test_without_lineages_it_can_fail_but_not_be_fixed(target: Staging, tmp_path: Path) -> None:
    file = scenario_file(tmp_path)

    assert reproduce(file, target.url)[0] == 1
    target.repaired = True
    code, _, said = reproduce(file, target.url)
    assert code == 3
    assert "nobody says whether a fault fired" in said


def test_faults_that_are_never_reached(target: Staging, tmp_path: Path) -> None:
    file = scenario_file(tmp_path, "error@api>db:get:olddb")
    seen = ("--listen", target.otlp, "--quiet", "0.3")

    code, _, said = reproduce(file, target.url, *seen)

    assert code == 3
    assert "no fault fired" in said


def test_another_key_injects_nothing(target: Staging, tmp_path: Path) -> None:
    other = "staging:another-key-0123456"

    assert reproduce(scenario_file(tmp_path), target.url, keys=other)[0] == 3


def test_a_failure_behind_a_200_takes_an_assertion(target: Staging, tmp_path: Path) -> None:
    seen = ("--listen", target.otlp, "--quiet", "0.3")
    hidden = {"hidden": True}
    file = scenario_file(tmp_path, LAYOUT, path="/boot", expect=hidden)
    code, _, said = reproduce(file, target.url, *seen)
    assert code == 3
    assert "json_path" in said

    file = scenario_file(tmp_path, LAYOUT, path="/boot", expect={**hidden, "json_path": "$.rows"})
    assert reproduce(file, target.url)[0] == 1

    steady = tmp_path / "experiment.json"
    tolerance = {"type": "jsonpath", "target": "body", "path": "$.rows[0].row"}
    probe = {"provider": {"type": "http", "url": "${target}/boot"}, "tolerance": tolerance}
    steady.write_text(json.dumps({"steady-state-hypothesis": {"probes": [probe]}}))
    file = scenario_file(tmp_path, LAYOUT, path="/boot", expect=hidden)
    assert reproduce(file, target.url, "--steady-state", str(steady))[0] == 1


def test_a_target_that_is_not_there_is_no_failure_of_the_faults(tmp_path: Path) -> None:
    code, _, said = reproduce(scenario_file(tmp_path), "http://127.0.0.1:1")

    assert code == 3
    assert "without the faults as well" in said


@pytest.mark.parametrize(
    ("parts", "words", "says"),
    [
        ({"path": "/play/*"}, (), "has holes"),
        ({"request": {"method": "POST", "path": "/play/7"}}, (), "--unsafe"),
        (
            {"request": {"method": "POST", "path": "/play/7", "body": {"a": "*"}}},
            ("--unsafe",),
            "--data",
        ),
        ({}, ("--path", "play"), "begins with a slash"),
        ({}, ("--header", "authorization"), "NAME: VALUE"),
        ({}, ("--listen", "nowhere"), "--listen nowhere"),
    ],
)
def test_what_cannot_be_sent_is_refused(
    tmp_path: Path, parts: dict[str, Any], words: tuple[str, ...], says: str
) -> None:
    with pytest.raises(InvalidScenario, match=says):
        reproduce(scenario_file(tmp_path, **parts), "http://127.0.0.1:1", *words)


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="is no file, so it is a finding's id"):
        reproduce("7c1e55aa0b12", "http://127.0.0.1:1")
    with pytest.raises(KeyFormatError, match="FIT_KEYS is empty"):
        reproduce(scenario_file(tmp_path), "http://127.0.0.1:1", keys="")
    with pytest.raises(InvalidScenario, match="is not a target"):
        reproduce(scenario_file(tmp_path), "ftp://staging")


def test_a_context_for_other_tools(target: Staging) -> None:
    words = ["scenario", "context", LICENSE, "--device", DEVICE, "--for", "30s"]
    header = CliRunner().invoke(app, words, env={"FIT_KEYS": KEY}).stdout.strip()

    asked = {"x-device-id": DEVICE, "baggage": header}
    assert httpx.get(f"{target.url}/play/7", headers=asked).status_code == 502
    of_another = {**asked, "x-device-id": "device-0001"}
    assert httpx.get(f"{target.url}/play/7", headers=of_another).status_code == 200
