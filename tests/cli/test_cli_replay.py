"""``ldfi replay`` against a staging server and a service, both real."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from typer.testing import CliRunner, Result

from ldfi.cli.main import app
from ldfi.errors import InvalidReplay, Unreachable
from ldfi.testing.live_service import served

EXEMPLARS = """
exemplars:
  - {path: /boot, headers: {x-device-type: tv, cookie: secret}}
  - {path: /broken}
assertion: {json_path: $.rows, equals: 3}
"""


def staging() -> FastAPI:
    application = FastAPI()

    @application.get("/boot")
    async def boot(request: Request) -> dict[str, object]:
        assert "cookie" not in request.headers
        return {"rows": 3}

    @application.get("/broken")
    async def broken() -> JSONResponse:
        return JSONResponse({"rows": 0})

    return application


class Service:
    """Takes device metrics, as the real one does."""

    def __init__(self) -> None:
        self.metrics: list[dict[str, object]] = []
        self.app = FastAPI()
        self.app.post("/api/v1/device-metrics", status_code=202)(self.take)

    async def take(self, request: Request) -> dict[str, int]:
        assert request.headers["authorization"] == "Bearer t0ken"
        self.metrics += (await request.json())["metrics"]
        return {}


def test_outcomes_of_exemplar_requests_reach_the_service(tmp_path: Path) -> None:
    # Given a staging system, one of whose pages answers 200 with nothing on it
    file, service = tmp_path / "replay.yaml", Service()
    file.write_text(EXEMPLARS)
    with served(staging()) as target, served(service.app) as url:
        # When its requests are replayed for a while
        options = ["--target", target, "--url", url, "--token", "t0ken", "--rate", "40"]
        done = CliRunner().invoke(
            app, ["replay", str(file), *options, "--for", "1.5s", "--json"], catch_exceptions=False
        )
    # Then every answer is reported, judged by what is asserted of its body
    counts = json.loads(done.stdout)
    assert counts["sent"] == len(service.metrics) > 10
    failed = [each for each in service.metrics if each["outcome"] == "failure"]
    assert counts["failed"] == len(failed)
    assert 0 < len(failed) < len(service.metrics)
    assert {each["error_code"] for each in failed} == {"json-path"}


def test_a_service_that_is_away_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "replay.yaml"
    file.write_text(EXEMPLARS)
    with served(staging()) as target:
        options = ["--target", target, "--url", "http://127.0.0.1:9", "--token", "t0ken"]
        done = CliRunner().invoke(app, ["replay", str(file), *options, "--rate", "40"])
    assert isinstance(done.exception, Unreachable)


@pytest.mark.parametrize("text", ["", "exemplars: []", "exemplars: [{}]", "[", "exemplar: 1"])
def test_a_file_that_says_nothing_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "replay.yaml"
    file.write_text(text)
    done = CliRunner().invoke(app, ["replay", str(file), "--target", "http://x", "--token", "t"])
    assert isinstance(done.exception, InvalidReplay)


def fed(tmp_path: Path, text: str, *options: str, target: str | None = None) -> Result:
    """Feed a service for a moment with what the file says."""
    file, service = tmp_path / "replay.yaml", Service()
    file.write_text(text)
    with served(staging()) as here, served(service.app) as url:
        given = ["--target", target or here, "--url", url, "--token", "t0ken", *options]
        return CliRunner().invoke(app, ["replay", str(file), *given], catch_exceptions=True)


def test_nothing_listening_is_unreachable(tmp_path: Path) -> None:
    done = fed(tmp_path, EXEMPLARS, "--for", "1s", target="http://127.0.0.1:9")
    assert isinstance(done.exception, Unreachable)
    assert "http://127.0.0.1:9" in str(done.exception)


def test_a_path_alone_asks_that_there_is_something(tmp_path: Path) -> None:
    text = "exemplars: [{path: /boot}]\nassertion: {json_path: $.rows}"
    done = fed(tmp_path, text, "--for", "1s", "--rate", "20", "--json")
    assert json.loads(done.stdout)["failed"] == 0
    asked_for_null = text.replace("$.rows", "$.rows, equals: null")
    counts = json.loads(fed(tmp_path, asked_for_null, "--for", "1s", "--json").stdout)
    assert counts["failed"] == counts["sent"] > 0


def test_failures_are_counted_by_reason_and_the_first_are_shown(tmp_path: Path) -> None:
    done = fed(tmp_path, EXEMPLARS, "--for", "1s", "--rate", "20")
    assert "json-path" in done.stdout
    assert "GET /broken: $.rows finds 0, not 3" in done.stdout


def test_a_rate_that_was_not_reached_is_said_and_cannot_pass(tmp_path: Path) -> None:
    done = fed(tmp_path, EXEMPLARS, "--for", "1s", "--rate", "10000", "--devices", "1")
    assert "asked 10000/s, reached " in done.stdout
    assert done.exit_code == 3


def test_two_targets_are_refused_where_outcomes_are_reported(tmp_path: Path) -> None:
    done = fed(tmp_path, EXEMPLARS, "--for", "1s", "--target", "http://127.0.0.1:9")
    assert isinstance(done.exception, InvalidReplay)
