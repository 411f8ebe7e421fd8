"""Traces fetched from Jaeger and Tempo, by servers that answer as these do."""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console

from ldfi.analysis.analysis import analyze
from ldfi.analysis.jaeger_api import fetch_from_jaeger
from ldfi.analysis.progress import fetching_on
from ldfi.analysis.report import Analysis
from ldfi.analysis.tempo_api import fetch_from_tempo
from ldfi.analysis.trace_api import TraceApi, TraceQuery
from ldfi.cli.trace_store import TraceStore, fetched
from ldfi.errors import ExperimentsError, Invalid, NotFound, Unreachable
from ldfi.testing.loopback_server import Answer, Listener

DATA = Path(__file__).parents[1] / "data"
JAEGER = json.loads(gzip.decompress((DATA / "hotrod.jaeger.json.gz").read_bytes()))
OTLP = [
    json.loads(line)
    for line in gzip.decompress((DATA / "hotrod.otlp.jsonl.gz").read_bytes()).splitlines()
]
SERVICES = ["customer", "driver", "frontend", "mysql", "redis-manual", "route"]
NOW = 1_800_000_000.0
QUERY = TraceQuery("frontend", NOW - 3600, NOW, 50)
SECRET = "hush-hush-hush-hush"
Asked = list[tuple[str, dict[str, str]]]
Serve = Callable[[str, Mapping[str, str]], Answer]


def in_json(document: Any, status: int = 200) -> Answer:
    return Answer(status, json.dumps(document).encode(), {"Content-Type": "application/json"})


def answer(data: Any) -> Answer:
    """As Jaeger writes all its answers."""
    return in_json({"data": data, "total": 0, "limit": 0, "offset": 0, "errors": None})


def jaeger(path: str, query: Mapping[str, str]) -> Answer:
    if path == "/api/services":
        return answer(SERVICES)
    if path == "/api/traces" and query.get("service") in SERVICES:
        return answer(JAEGER["data"][: int(query["limit"])])
    return Answer(200, b"<!doctype html><title>Jaeger UI</title>", {"Content-Type": "text/html"})


def by_trace() -> dict[str, list[Any]]:
    """Tempo's batches of each trace: OTLP with its ids in base64."""
    found: dict[str, list[Any]] = {}
    for group in (group for each in OTLP for group in each["resourceSpans"]):
        for scope in group["scopeSpans"]:
            for span in scope["spans"]:
                spans = [_in_base64(span)]
                batch = {**group, "scopeSpans": [{**scope, "spans": spans}]}
                found.setdefault(span["traceId"], []).append(batch)
    return found


def _in_base64(span: dict[str, Any]) -> dict[str, Any]:
    ids = {key for key in ("traceId", "spanId", "parentSpanId") if span.get(key)}
    return span | {key: base64.b64encode(bytes.fromhex(span[key])).decode() for key in ids}


def tempo(path: str, query: Mapping[str, str], *, old: bool = False, cut: str = "") -> Answer:
    traces = by_trace()
    *_, trace_id = path.split("/")
    if path == "/api/search":
        wanted = "frontend" in query["q"] or query["q"] == "{}"
        found = [{"traceID": each.lstrip("0"), "rootServiceName": "frontend"} for each in traces]
        return in_json({"traces": found[: int(query["limit"])] if wanted else [], "metrics": {}})
    if path == "/api/search/tag/service.name/values":
        return in_json({"tagValues": SERVICES, "metrics": {}})
    batches = traces.get(trace_id.rjust(32, "0"))
    if batches is not None and path == f"/api/traces/{trace_id}":
        return in_json({"batches": batches})
    if batches is not None and path == f"/api/v2/traces/{trace_id}" and not old:
        part = {"status": "PARTIAL", "message": "too large"} if trace_id == cut else {}
        return in_json({"trace": {"resourceSpans": batches}, "metrics": {}, **part})
    return Answer(404, b"404 page not found\n")


@pytest.fixture
def asked() -> Asked:
    return []


@pytest.fixture
def store(asked: Asked) -> Iterator[Callable[[Serve], str]]:
    """Starts a store; it wants the secret where its path begins with ``/private``."""
    opened: list[Listener] = []

    def start(serve: Serve) -> str:
        def respond(path: str, query: Mapping[str, str], authorization: str) -> Answer:
            asked.append((path, dict(query)))
            if path.startswith("/private"):
                path = path.removeprefix("/private")
                if authorization != f"Bearer {SECRET}":
                    return Answer(401, b"who are you?")
            return serve(path, query)

        opened.append(Listener(respond))
        opened[-1].open()
        return opened[-1].url

    yield start
    for each in opened:
        each.close()


def ignore(_what: str, _done: float, _of: float | None) -> None:
    pass


def fetch(
    url: str,
    tmp_path: Path,
    fetching: Callable[..., Any],
    query: TraceQuery = QUERY,
    **headers: str,
) -> Path:
    path = tmp_path / "fetched"
    with TraceApi(url, {}, ignore) as api, path.open("wb") as file:
        fetching(api, query, file)
    return path


def same(first: Analysis, second: Analysis) -> bool:
    return (first.spans, first.traces, first.classes) == (
        second.spans,
        second.traces,
        second.classes,
    )


def test_jaeger_is_asked_for_traces_of_a_service_in_some_time(
    store: Callable[[Serve], str], asked: Asked, tmp_path: Path
) -> None:
    path = fetch(store(jaeger), tmp_path, fetch_from_jaeger)
    assert same(analyze([path]), analyze([DATA / "hotrod.jaeger.json.gz"]))
    # Then the times were microseconds
    times = {"start": str(int((NOW - 3600) * 1e6)), "end": str(int(NOW * 1e6))}
    assert asked[-1] == ("/api/traces", {"service": "frontend", "limit": "50", **times})


@pytest.mark.parametrize("old", [False, True])
def test_tempo_is_searched_and_asked_for_each_trace(
    store: Callable[[Serve], str], asked: Asked, tmp_path: Path, old: bool
) -> None:
    # Given Tempo, or one that knows the older path only
    url = store(lambda path, query: tempo(path, query, old=old))
    path = fetch(url, tmp_path, fetch_from_tempo)
    assert same(analyze([path]), analyze([DATA / "hotrod.otlp.jsonl.gz"]))
    query = {"q": '{ resource.service.name = "frontend" }', "limit": "50"}
    times = {"start": str(int(NOW - 3600)), "end": str(int(NOW) + 1)}
    assert asked[0] == ("/api/search", query | times)


def test_what_tempo_had_to_cut_is_left_out(store: Callable[[Serve], str], tmp_path: Path) -> None:
    first, *others = by_trace()
    url = store(lambda path, query: tempo(path, query, cut=first.lstrip("0")))
    path = tmp_path / "fetched"
    with TraceApi(url, {}, ignore) as api, path.open("wb") as file:
        assert fetch_from_tempo(api, QUERY, file) == 1
    assert analyze([path]).traces == len(others)


def test_a_trace_that_tempo_has_lost_is_left_out(
    store: Callable[[Serve], str], tmp_path: Path
) -> None:
    # Given a Tempo that answers for one trace that there is nothing, and for one that it is gone
    def forgetful(path: str, query: Mapping[str, str]) -> Answer:
        if path == "/api/search":
            return in_json({"traces": [{"traceID": "1"}, {"traceID": "2"}]})
        return in_json({"trace": {}}) if path == "/api/v2/traces/1" else Answer(404)

    path = tmp_path / "fetched"
    with TraceApi(store(forgetful), {}, ignore) as api, path.open("wb") as file:
        assert fetch_from_tempo(api, QUERY, file) == 2
    assert path.read_bytes() == b""


def test_a_name_with_quotes_stays_a_name(store: Callable[[Serve], str], asked: Asked) -> None:
    odd = TraceQuery('a" || true || "\\', 0, 1, 5)
    with TraceApi(store(tempo), {}, ignore) as api, pytest.raises(NotFound):
        fetch_from_tempo(api, odd, io.BytesIO())
    assert asked[0][1]["q"] == '{ resource.service.name = "a\\" || true || \\"\\\\" }'


@pytest.mark.parametrize(
    ("serve", "fetching"), [(jaeger, fetch_from_jaeger), (tempo, fetch_from_tempo)]
)
def test_of_a_service_that_is_not_there_those_that_are_are_named(
    store: Callable[[Serve], str], tmp_path: Path, serve: Serve, fetching: Callable[..., Any]
) -> None:
    nobody = TraceQuery("frontent", NOW - 60, NOW, 5)
    with pytest.raises(NotFound, match="no service 'frontent'; there is customer, driver, front"):
        fetch(store(serve), tmp_path, fetching, nobody)


def test_jaeger_wants_a_service_and_says_which(
    store: Callable[[Serve], str], tmp_path: Path
) -> None:
    with pytest.raises(NotFound, match="--service; there is customer"):
        fetch(store(jaeger), tmp_path, fetch_from_jaeger, TraceQuery("", 0, 1, 5))


def test_tempo_may_be_asked_for_whatever_there_is(
    store: Callable[[Serve], str], tmp_path: Path
) -> None:
    path = fetch(store(tempo), tmp_path, fetch_from_tempo, TraceQuery("", 0, 1, 1))
    assert analyze([path]).traces == 1


@pytest.mark.parametrize(
    ("given", "error", "why"),
    [
        (Answer(403), Invalid, "LDFI_TRACES_TOKEN"),
        (Answer(302, b"", {"Location": "/login"}), Invalid, "answers 302.*--header"),
        (Answer(404, b"nothing"), NotFound, "has no /api/services"),
        (Answer(500, b"the  disk\nis full"), Unreachable, "answers 500: the disk is full"),
        (Answer(200, b"<html>"), Unreachable, "does not answer in JSON"),
    ],
)
def test_what_goes_wrong_is_said(
    store: Callable[[Serve], str],
    tmp_path: Path,
    given: Answer,
    error: type[ExperimentsError],
    why: str,
) -> None:
    with pytest.raises(error, match=why):
        fetch(store(lambda _path, _query: given), tmp_path, fetch_from_jaeger)


def test_a_page_in_place_of_traces_is_no_trace(
    store: Callable[[Serve], str], tmp_path: Path
) -> None:
    def pages(path: str, query: Mapping[str, str]) -> Answer:
        return jaeger(path, query) if path == "/api/services" else jaeger("/", query)

    with pytest.raises(Unreachable, match="/api/traces does not answer in JSON"):
        fetch(store(pages), tmp_path, fetch_from_jaeger)


@pytest.mark.parametrize("url", ["jaeger:16686", "ftp://jaeger", "http://", "http://a:b", "x y"])
def test_what_is_no_url_is_said(url: str) -> None:
    with pytest.raises(Invalid, match="no URL"):
        TraceApi(url, {}, ignore)


def test_a_password_in_the_address_is_sent_and_never_shown(
    store: Callable[[Serve], str], tmp_path: Path
) -> None:
    with_password = store(jaeger).replace("http://", f"http://kim:{SECRET}@")
    fetch(with_password, tmp_path, fetch_from_jaeger)
    with pytest.raises(Unreachable) as raised:
        fetch(f"http://kim:{SECRET}@127.0.0.1:9", tmp_path, fetch_from_jaeger)
    assert SECRET not in str(raised.value)
    assert "http://127.0.0.1:9" in str(raised.value)


def test_progress_is_shown_only_where_it_takes_long() -> None:
    def shown(late: float, wait: float) -> str:
        out = io.StringIO()
        with fetching_on(Console(file=out, force_terminal=True), late) as progress:
            progress("tempo: traces", 3, 7)
            time.sleep(wait)
        return out.getvalue()

    assert shown(late=30, wait=0) == ""
    assert "tempo: traces" in shown(late=0.01, wait=0.3)


def ldfi(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ldfi.cli", "analyze", *words],
        env={**os.environ, "COLUMNS": "200", **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_command_line_fetches_with_a_token(store: Callable[[Serve], str]) -> None:
    url = f"{store(jaeger)}/private"
    words = ("--jaeger", url, "--service", "frontend", "--lookback", "2h", "--limit", "2", "--json")
    # Then without the token it says how to give one
    refused = ldfi(*words)
    assert refused.returncode == 2
    assert "LDFI_TRACES_TOKEN" in refused.stderr
    # And with it, by variable or by header, the traces are there, under the store's name
    for done in (
        ldfi(*words, LDFI_TRACES_TOKEN=SECRET),
        ldfi(*words, "--header", f"Authorization: Bearer {SECRET}"),
    ):
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        assert (said["traces"], list(said["files"])) == (2, [url])
        assert "There may be more" in done.stderr
        assert SECRET not in done.stdout + done.stderr


def test_what_was_fetched_goes_with_files_of_outcomes(
    store: Callable[[Serve], str], tmp_path: Path
) -> None:
    told = tmp_path / "outcomes.jsonl"
    ids = list(by_trace())
    told.write_text("\n".join(json.dumps({"trace_id": each, "success": False}) for each in ids))
    done = ldfi(str(told), "--tempo", store(tempo), "--json")
    said = json.loads(done.stdout)
    assert (said["traces"], said["outcomes"]) == (len(ids), len(ids))
    assert sum(each["failed"] for each in said["classes"]) == len(ids)


def test_nobody_there_is_exit_code_four_and_nothing_given_is_usage() -> None:
    away = ldfi("--jaeger", "http://127.0.0.1:9", "--service", "x")
    assert (away.returncode, "Traceback" in away.stderr) == (4, False)
    assert "no answer from http://127.0.0.1:9" in away.stderr
    assert ldfi().returncode == 2


@pytest.mark.parametrize(
    ("jaeger", "tempo", "lookback", "token", "why"),
    [
        ("http://a", "http://b", "1h", None, "not both"),
        ("http://a", None, "soon", None, "no length of time"),
        (None, None, "1h", None, "files are read whole"),
        (None, "http://b", "1h", f"{SECRET}\nü", "cannot be sent"),
    ],
)
def test_what_was_typed_wrongly_is_said(
    jaeger: str | None, tempo: str | None, lookback: str, token: str | None, why: str
) -> None:
    store = TraceStore(jaeger, tempo, "front", lookback, 10, (), token)
    with pytest.raises((Invalid, typer.BadParameter), match=why), fetched(store):
        pass


def test_no_traces_in_that_time_is_said(store: Callable[[Serve], str]) -> None:
    def empty(path: str, query: Mapping[str, str]) -> Answer:
        return answer([]) if path == "/api/traces" else jaeger(path, query)

    done = ldfi("--jaeger", store(empty), "--service", "route", "--lookback", "5m")
    assert done.returncode == 2
    assert "No traces of route in the last 5m." in done.stderr
