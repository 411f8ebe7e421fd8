"""``ldfi replay run --listen`` against servers that export their spans: what requests called."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typer.testing import CliRunner

from ldfi.cli.main import app
from ldfi.cli.ports import free_port
from ldfi.testing.live_service import served

SENT = 1_700_000_000_000_000_000


def spans_of(traceparent: str, calls: dict[str, int]) -> dict[str, Any]:
    """The export of one request: ``calls``: milliseconds by host."""
    _, trace, parent, _ = traceparent.split("-")

    def made(number: int, kind: int, ms: int, above: str, **said: str) -> dict[str, Any]:
        attributes = [{"key": k, "value": {"stringValue": v}} for k, v in said.items()]
        begin = SENT + number
        return {
            "traceId": trace,
            "spanId": f"{number:016x}",
            "parentSpanId": above,
            "name": "GET",
            "kind": kind,
            "startTimeUnixNano": str(begin),
            "endTimeUnixNano": str(begin + ms * 1_000_000),
            "attributes": attributes,
        }

    root = made(1, 2, 100, parent, **{"http.request.method": "GET", "http.route": "/home"})
    spans = [root]
    for number, (host, ms) in enumerate(calls.items(), 2):
        said = {"http.request.method": "GET", "server.address": host, "url.template": "/x"}
        spans.append(made(number, 3, ms, root["spanId"], **said))
    service = {"attributes": [{"key": "service.name", "value": {"stringValue": "api"}}]}
    return {"resourceSpans": [{"resource": service, "scopeSpans": [{"spans": spans}]}]}


@contextmanager
def exporting(port: int, calls: dict[str, int]) -> Iterator[str]:
    """A server that calls something in each request, and exports that when it has answered."""

    def export(traceparent: str) -> None:
        document = spans_of(traceparent, calls)
        httpx.post(f"http://127.0.0.1:{port}/v1/traces", json=document).raise_for_status()

    async def answer(request: Request) -> Response:
        asked = request.headers.get("traceparent", "")
        task = BackgroundTask(export, asked) if asked.endswith("-01") else None
        return JSONResponse({"rows": 3}, background=task)

    with served(Starlette(routes=[Route("/{rest:path}", answer)])) as url:
        yield url


def test_calls_that_are_new_gone_and_slower_are_told_and_shown(tmp_path: Path) -> None:
    recording, page, out = (tmp_path / each for each in ("r.jsonl", "page.html", "run.jsonl"))
    recording.write_text('{"path": "/home"}\n')
    port = free_port()
    how = ("--rate", "20", "--duration", "1s", "--listen", f"127.0.0.1:{port}", "--json")
    with (
        exporting(port, {"store": 10, "ads": 5}) as old,
        exporting(port, {"store": 40, "ratings": 5}) as new,
    ):
        targets = ("--target", f"old={old}", "--target", f"new={new}")
        words = ["replay", "run", str(recording), *targets, *how, "--out", str(out)]
        done = CliRunner().invoke(app, [*words, "--html", str(page)])
    assert done.exit_code in {0, 1, 3}, done.exception
    changed = {each["call"]: each["change"] for each in json.loads(done.stdout)["calls"]}
    assert {name.partition(":")[2]: kind for name, kind in changed.items()} == {
        "GET:store/x": "slower",
        "GET:ads/x": "gone",
        "GET:ratings/x": "new",
    }
    assert "Calls that changed" in page.read_text()
    again = CliRunner().invoke(app, ["replay", "compare", str(out), "--json"])
    assert {each["call"]: each["change"] for each in json.loads(again.stdout)["calls"]} == changed


def test_the_page_of_one_run_shows_what_was_measured_and_called(tmp_path: Path) -> None:
    recording, page = tmp_path / "r.jsonl", tmp_path / "page.html"
    recording.write_text('{"path": "/home"}\n')
    port = free_port()
    how = ("--rate", "20", "--duration", "1s", "--listen", f"127.0.0.1:{port}", "--json")
    with exporting(port, {"store": 10}) as url:
        words = ["replay", "run", str(recording), "--target", url, *how]
        done = CliRunner().invoke(app, [*words, "--html", str(page)])
    assert done.exit_code in {0, 3}, done.exception
    shown = page.read_text()
    assert "store/x" in shown
    assert "10 ms" in shown
    assert "<svg" in shown
    assert "p99" in shown
    assert "http://" not in shown.replace("http://127.0.0.1", "")
