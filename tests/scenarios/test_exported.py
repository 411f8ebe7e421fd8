"""Exports, run as they are: by the real ``chaos``, by pytest, by a shell; and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from fastapi import FastAPI
from typer.testing import CliRunner

from ldfi.cli.main import app, main
from ldfi.errors import NotExpressible
from ldfi.testing.live_service import served
from tests.scenarios.staging import DEVICE, KEY, LICENSE, Staging, scenario_file

BIN = Path(sys.executable).parent


def exported(target: str, file: Path, *words: str) -> str:
    """What ``ldfi export`` prints. Its errors are raised."""
    done = CliRunner().invoke(app, ["export", target, str(file), *words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def run(*command: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """A program with the key of the staging system."""
    return subprocess.run(
        command,
        cwd=cwd,
        env={
            **os.environ,
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "FIT_KEYS": KEY,
            "LDFI_DEVICE": DEVICE,
            "LDFI_URL": "",
            "LDFI_TOKEN": "",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            **env,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def chaos(experiment: Path, target: Staging) -> tuple[int, dict[str, Any]]:
    """Run it as its description says; exit code and journal."""
    journal = experiment.with_suffix(".journal")
    words = ["scenario", "context", "--device", DEVICE, "--delay", "1", LICENSE]
    signed = CliRunner().invoke(app, words, env={"FIT_KEYS": KEY})
    assert signed.exit_code == 0, signed.output
    done = run(
        *("chaos", "--no-version-check", "--no-log-file", "run"),
        *("--journal-path", str(journal), str(experiment)),
        cwd=experiment.parent,
        LDFI_CONTEXT=signed.stdout.strip(),
        LDFI_TARGET=target.url,
    )
    assert journal.exists(), done.stderr
    return done.returncode, json.loads(journal.read_text())


@pytest.mark.long
def test_the_real_chaos_toolkit_deviates_when_broken_and_completes_when_fixed(
    target: Staging, tmp_path: Path
) -> None:
    experiment = tmp_path / "experiment.yaml"
    experiment.write_text(exported("chaostoolkit", scenario_file(tmp_path)))

    code, journal = chaos(experiment, target)
    assert (code, journal["status"], journal["deviated"]) == (1, "completed", True)
    untagged = journal["run"][0]["output"]
    assert untagged["status"] == 200
    plain = httpx.get(f"{target.url}/play/7", headers={"x-device-id": DEVICE})
    assert plain.status_code == 200, "whatever becomes of an experiment, nothing stays armed"

    target.repaired = True
    code, journal = chaos(experiment, target)
    assert (code, journal["status"], journal["deviated"]) == (0, "completed", False)
    assert yaml.safe_load(experiment.read_text())["runtime"]["rollbacks"]["strategy"] == "always"


def test_a_slow_answer_deviates(tmp_path: Path) -> None:
    file = scenario_file(tmp_path, LICENSE, expect={"status": [200, 204], "max_seconds": 5.0})
    document = yaml.safe_load(exported("chaostoolkit", file, "--target", "http://a"))

    (probe,) = document["steady-state-hypothesis"]["probes"]
    assert probe["tolerance"] == [200, 204]
    assert probe["provider"]["timeout"] == [3, 5.0]
    assert document["configuration"]["target"]["default"] == "http://a"


@pytest.mark.long
def test_the_pytest_file_runs_as_it_is(target: Staging, tmp_path: Path) -> None:
    file = tmp_path / "test_scenario.py"
    file.write_text(
        exported("pytest", scenario_file(tmp_path, expect={"json_path": "$.license.key"}))
    )
    words = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file.name)

    broken = run(*words, cwd=tmp_path, LDFI_TARGET=target.url)
    assert broken.returncode == 1, broken.stdout
    assert "1 failed, 1 passed" in broken.stdout
    assert "no licence" in broken.stdout

    target.repaired = True
    repaired = run(*words, cwd=tmp_path, LDFI_TARGET=target.url)
    assert repaired.returncode == 0, repaired.stdout

    seen = FastAPI()
    seen.get("/api/v1/replays/{trace}")(lambda: {"fired": []})
    with served(seen) as url:
        watched = {"LDFI_URL": url, "LDFI_TOKEN": "t0ken"}
        unproved = run(*words, cwd=tmp_path, LDFI_TARGET=target.url, **watched)
    assert "no fault fired: the test proves nothing" in unproved.stdout


@pytest.mark.long
@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_the_shell_script_runs_as_it_is(target: Staging, tmp_path: Path) -> None:
    file = tmp_path / "scenario.sh"
    file.write_text(exported("curl", scenario_file(tmp_path), "--target", target.url))

    done = run("sh", str(file), cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    plain, tagged = done.stdout.split("== with the faults")
    assert "HTTP/1.1 200" in plain
    assert "HTTP/1.1 502" in tagged


def test_no_export_holds_a_context(tmp_path: Path) -> None:
    file = scenario_file(tmp_path)

    for target in ("chaostoolkit", "curl", "pytest"):
        assert "fit=1." not in exported(target, file)


MESHED = "error@api>http:GET:license/licenses/*"


def test_chaos_mesh(tmp_path: Path) -> None:
    file = scenario_file(tmp_path, MESHED, "delay@api>http:POST:license/renewals/*")

    delay, abort = yaml.safe_load_all(exported("chaosmesh", file, "--port", "8080"))

    spec = {
        "mode": "all",
        "selector": {"namespaces": ["default"], "labelSelectors": {"app": "license"}},
        "target": "Request",
        "port": 8080,
        "method": "GET",
        "path": "/licenses/*",
        "request_headers": {"x-ldfi-scenario": "7c1e55aa0b12"},
        "abort": True,
        "duration": "60s",
    }
    if "delay" not in delay["spec"]:
        delay, abort = abort, delay
    assert abort["spec"] == spec
    assert abort["apiVersion"] == "chaos-mesh.org/v1alpha1"
    assert abort["kind"] == "HTTPChaos"
    assert abort["metadata"]["name"].startswith("ldfi-7c1e55aa0b12-")
    assert delay["spec"]["delay"] == "1000ms"
    assert "abort" not in delay["spec"]
    names = {abort["metadata"]["name"], delay["metadata"]["name"]}
    assert len(names) == 2


@pytest.mark.parametrize(
    ("target", "faults", "parts", "words", "says"),
    [
        ("chaostoolkit", (), {"path": "/play/*"}, (), "has holes"),
        ("curl", (), {"path": "/play/*"}, (), "has holes"),
        ("pytest", (), {"expect": {"hidden": True}}, (), "would call it fixed"),
        ("pytest", (), {"expect": {"json_path": "$..rows"}}, (), "is a query"),
        ("curl", (), {"request": {"method": "POST", "path": "/"}}, (), "reproduce --unsafe"),
        ("chaostoolkit", (), {"expect": {"body_contains": "x"}}, (), "use json_path"),
        ("chaostoolkit", (), {"expect": {"json_path": "$.a"}}, (), "give `equals`"),
        *(
            (each, ("delay:0.5..1@a>http:GET:b/",), {}, (), "it would try one of many")
            for each in ("chaostoolkit", "curl", "pytest")
        ),
        ("chaosmesh", ("delay:0.5..1@a>http:GET:b/",), {}, ("--port", "1"), "draws another length"),
        ("chaosmesh", ("error@a>db:GET:b",), {}, ("--port", "1"), "does not pass a proxy"),
        ("chaosmesh", ("error@a>rpc:Get:b/S",), {}, ("--port", "1"), "speaks HTTP/1.1 only"),
        ("chaosmesh", ("error:2@a>http:GET:b/",), {}, ("--port", "1"), "does not count calls"),
        (
            "chaosmesh",
            ("error@a>http:GET:b/", "error@a>http:GET:c/"),
            {},
            ("--port", "1"),
            "export them one by one",
        ),
    ],
)
def test_what_a_target_cannot_express_is_refused(
    tmp_path: Path,
    target: str,
    faults: tuple[str, ...],
    parts: dict[str, Any],
    words: tuple[str, ...],
    says: str,
) -> None:
    with pytest.raises(NotExpressible, match=says.replace(".", r"\.").replace("$", r"\$")):
        exported(target, scenario_file(tmp_path, *faults, **parts), *words)


def test_a_refusal_is_loud_and_ends_with_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = scenario_file(tmp_path, path="/play/*")
    monkeypatch.setattr(sys, "argv", ["ldfi", "export", "curl", str(file)])
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    with pytest.raises(SystemExit) as ended:
        main()

    told = capsys.readouterr()
    assert (ended.value.code, told.out) == (2, "")
    assert "has holes" in told.err


def test_a_path_fills_the_holes(tmp_path: Path) -> None:
    file = scenario_file(tmp_path, path="/play/*")

    assert "/play/8?a=b" in exported("curl", file, "--path", "/play/8?a=b")
