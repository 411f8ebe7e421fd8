"""``ldfi replay run``, ``compare``, ``record`` and ``export`` as people call them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ldfi.cli.main import app
from ldfi.errors import InvalidReplay, Unreachable
from tests.kit.service import GIVEN, client_of, service
from tests.scenarios.replays.test_load_run import target

RECORDING = '{"path": "/home"}\n{"path": "/broken"}\n{"path": "/users/*"}\n'
SHORT = ("--rate", "30", "--duration", "1s", "--json")


def called(*words: str) -> Result:
    return CliRunner().invoke(app, ["replay", *words], env={"LDFI_TOKEN": GIVEN["operator"]})


@pytest.fixture
def recording(tmp_path: Path) -> str:
    file = tmp_path / "recording.jsonl"
    file.write_text(RECORDING)
    return str(file)


def test_one_version_is_measured_by_class(recording: str, tmp_path: Path) -> None:
    out = tmp_path / "run.jsonl"
    with target() as to:
        done = called("run", recording, "--target", to.url, *SHORT, "--out", str(out))
    assert done.exit_code == 1, "one in two failed"
    document = json.loads(done.stdout)
    classes = {each["class"]: each for each in document["classes"]}
    assert set(classes) == {"all requests", "GET /home", "GET /broken"}
    assert classes["GET /broken"]["success"][0] == 0.0
    assert classes["GET /home"]["success"][0] == 1.0
    assert set(document["target"]["reasons"]) == {"status-500"}
    assert out.read_text().count("\n") == 3


def test_two_versions_are_compared_in_turns_and_again_from_the_file(
    recording: str, tmp_path: Path
) -> None:
    out, html = tmp_path / "run.jsonl", tmp_path / "page.html"
    with target() as one, target() as two:
        targets = ["--target", f"old={one.url}", "--target", f"new={two.url}"]
        done = called("run", recording, *targets, *SHORT, "--out", str(out), "--html", str(html))
    document = json.loads(done.stdout)
    assert document["in_turns"] is True
    assert done.exit_code in {1, 3}, "too few to tell, whatever this machine made of them"
    page = html.read_text()
    assert "<svg" in page
    assert "http://" not in page.replace("http://127.0.0.1", "")
    again = called("compare", str(out), "--json")
    assert again.exit_code == done.exit_code
    assert json.loads(again.stdout)["verdict"] == document["verdict"]


def test_two_runs_of_one_name_are_told_apart_by_their_files(recording: str, tmp_path: Path) -> None:
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    with target() as to:
        for out in (before, after):
            called("run", recording, "--target", to.url, *SHORT, "--out", str(out))
    document = json.loads(called("compare", str(before), str(after), "--json").stdout)
    assert (document["old"]["name"], document["new"]["name"]) == ("before", "after")


def test_nothing_listening_names_and_more_than_two_targets(recording: str) -> None:
    nobody = called("run", recording, "--target", "http://127.0.0.1:9", *SHORT)
    assert isinstance(nobody.exception, Unreachable)
    twice = ["--target", "http://127.0.0.1:9", "--target", "http://127.0.0.1:8"]
    refused = called("run", recording, *twice, *SHORT)
    assert isinstance(refused.exception, InvalidReplay)
    assert "old=URL" in str(refused.exception)


@pytest.mark.parametrize(
    "words", [("--profile", "wild"), ("--mix", "a/b"), ("--fill", "users"), ("--mix", "0/0")]
)
def test_what_makes_no_sense_is_refused(recording: str, words: tuple[str, str]) -> None:
    done = called("run", recording, "--target", "http://127.0.0.1:9", *words)
    assert isinstance(done.exception, InvalidReplay)


def test_a_result_is_kept_by_the_service_and_listed(recording: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ldfi.sqlite3'}"
    with client_of(service(url), GIVEN["viewer"]) as client, target() as to:
        here = str(client.base_url)
        done = called("run", recording, "--target", to.url, *SHORT, "--keep", "--url", here)
        assert done.exit_code == 1, done.exception
        kept = json.loads(done.stdout)["kept"]
        listed = client.get("/api/v1/replays/runs").json()["items"]
        assert [each["id"] for each in listed] == [kept]
        shown = client.get(f"/api/v1/replays/runs/{kept}").json()
        assert shown["document"]["ldfi"] == "measurement"
        assert client.get("/api/v1/replays/runs/none").status_code == 404
        refused = client.post("/api/v1/replays/runs", json={"document": shown["document"]})
        assert refused.status_code == 403


def test_a_log_becomes_a_recording_and_a_script(tmp_path: Path) -> None:
    log, out, k6 = (str(tmp_path / name) for name in ("access.log", "r.jsonl", "load.js"))
    Path(log).write_text('h - - [t] "GET /home HTTP/1.1" 200 1\n')
    assert "1 requests" in called("record", log, "--out", out).stdout
    assert called("export", out, "--k6", k6).exit_code == 0
    assert "ramping-arrival-rate" in Path(k6).read_text()
    assert json.loads(called("schema").stdout)["$schema"]


def test_targets_see_marked_requests_only(recording: str) -> None:
    with target() as to:
        called("run", recording, "--target", to.url, *SHORT, "--fill", "users=7,8")
    assert {each[1] for each in to.got} == {"/home", "/broken", "/users/7", "/users/8"}
    assert {each[3]["x-ldfi-replay"] for each in to.got} == {"1"}
