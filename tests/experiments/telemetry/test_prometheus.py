"""Guardrails against a server that speaks as Prometheus does, and against Prometheus itself."""

from __future__ import annotations

import asyncio
import math
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from ldfi.cli.ports import free_port
from ldfi.errors import InvalidGuardrail, PrometheusError
from ldfi.experiments.telemetry.prometheus import Prometheus, check_guardrail
from ldfi.testing.live_service import served
from tests.experiments.members import until

TOKEN = "s3cret"


def success(kind: str, result: object) -> Response:
    return JSONResponse({"status": "success", "data": {"resultType": kind, "result": result}})


def series(number: str, **labels: str) -> dict[str, object]:
    return {"metric": labels, "value": [1790000000.123, number]}


def failure(status: int, kind: str, reason: str) -> Response:
    document = {"status": "error", "errorType": kind, "error": reason}
    return JSONResponse(document, status_code=status)


ANSWERS: dict[str, Response] = {
    "one < 5": success("vector", [series("1.5")]),
    "zero < 5": success("vector", [series("0")]),
    "nine < 5": success("vector", []),
    "nan": success("vector", [series("NaN")]),
    "infinite": success("vector", [series("+Inf")]),
    "seven": success("scalar", [1790000000.123, "7"]),
    "many": success("vector", [series("1", pod="a"), series("2", pod="b")]),
    "range": success("matrix", [{"metric": {}, "values": [[1, "2"]]}]),
    "text": success("string", [1790000000.123, "seven"]),
    "histogram": success("vector", [{"metric": {}, "histogram": [1, {}]}]),
    "five": success("vector", [series("five")]),
    "sum(": failure(400, "bad_data", "1:5: parse error: unclosed left parenthesis"),
    "heavy": failure(503, "timeout", "query timed out in expression evaluation"),
    "page": PlainTextResponse("<html>welcome</html>"),
    "list": JSONResponse([]),
    "moved": RedirectResponse("http://127.0.0.1:1/", 302),
}


async def _query(request: Request) -> Response:
    if request.headers.get("authorization") != f"Bearer {TOKEN}":
        return failure(401, "unauthorized", "no token")
    promql = parse_qs((await request.body()).decode())["query"][0]
    if promql == "slow":
        await asyncio.sleep(3)
    return ANSWERS.get(promql, success("vector", []))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(Starlette(routes=[Route("/prom/api/v1/query", _query, methods=["POST"])])) as root:
        yield f"{root}/prom/"


def ask(url: str, what: str, promql: str, **arguments: Any) -> Any:
    async def run() -> Any:
        async with Prometheus(url, **{"token": TOKEN, **arguments}) as prometheus:
            return await getattr(prometheus, what)(promql)

    return asyncio.run(run())


def test_a_query_gives_one_number_or_none(url: str) -> None:
    assert ask(url, "query", "one < 5") == 1.5
    assert ask(url, "query", "seven") == 7
    assert ask(url, "query", "infinite") == math.inf
    assert math.isnan(ask(url, "query", "nan"))
    assert ask(url, "query", "nine < 5") is None


def test_a_guardrail_holds_when_something_is_left_of_it(url: str) -> None:
    assert ask(url, "holds", "one < 5") is True
    assert ask(url, "holds", "zero < 5") is True
    assert ask(url, "holds", "nine < 5") is False
    assert ask(url, "holds", "no such series") is False
    assert ask(url, "holds", "nan") is False


@pytest.mark.parametrize(
    ("promql", "told"),
    [
        ("many", "gives 2 series where one is needed; aggregate first"),
        ("range", "no number but a matrix"),
        ("text", "no number but a string"),
        ("histogram", "no number but a vector"),
        ("five", "'five', which is no number"),
        ("sum(", "Prometheus refuses 'sum\\('.*unclosed left parenthesis"),
        ("heavy", "query timed out"),
        ("page", "status 200.*is the URL right"),
        ("list", "is the URL right"),
        ("moved", "status 302"),
    ],
)
@pytest.mark.parametrize("what", ["query", "holds"])
def test_what_is_not_one_number_is_an_error(url: str, what: str, promql: str, told: str) -> None:
    with pytest.raises(PrometheusError, match=told):
        ask(url, what, promql)


def test_an_answer_that_does_not_come_in_time_is_an_error(url: str) -> None:
    with pytest.raises(PrometheusError, match=r"within 0\.2 seconds"):
        ask(url, "holds", "slow", timeout=0.2)


def test_nobody_there_a_wrong_token_and_a_wrong_url_are_errors(url: str) -> None:
    with pytest.raises(PrometheusError, match="cannot be asked"):
        ask("http://127.0.0.1:1", "holds", "one < 5")
    with pytest.raises(PrometheusError, match="no token"):
        ask(url, "holds", "one < 5", token="wrong")
    with pytest.raises(PrometheusError, match="cannot be asked"):
        ask("nonsense", "holds", "one < 5")
    with pytest.raises(PrometheusError, match="is the URL right"):
        ask(url + "elsewhere", "holds", "one < 5")


@pytest.mark.parametrize(
    "promql", ["x < bool 5", "x==bool 5", "sum(x) >  BOOL(3)", "a > bool b # c"]
)
def test_a_condition_with_bool_would_always_hold_and_is_refused(promql: str) -> None:
    with pytest.raises(InvalidGuardrail, match="Leave 'bool' out"):
        check_guardrail(promql)


def test_a_scalar_and_nothing_are_no_conditions(url: str) -> None:
    with pytest.raises(InvalidGuardrail, match="scalar"):
        ask(url, "holds", "seven")
    with pytest.raises(InvalidGuardrail, match="empty"):
        ask(url, "holds", " ")


@pytest.mark.parametrize(
    "promql", ['x{a="< bool"} < 5', "x < 5 # not < bool", "bool < 5", 'x{a="\\"< bool "} < 5']
)
def test_bool_elsewhere_is_no_modifier(promql: str) -> None:
    assert check_guardrail(promql) == promql


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real Prometheus that scrapes nothing: skipped where there is none."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("no `prometheus` on the PATH (Debian package: prometheus)")
    folder: Path = tmp_path_factory.mktemp("prometheus")
    (folder / "prometheus.yml").write_text("global: {}\n")
    address = f"127.0.0.1:{free_port()}"
    files = (f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data")
    command = [program, *files, f"--web.listen-address={address}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_until_ready(f"http://{address}/-/ready")
            yield f"http://{address}"
        finally:
            process.terminate()


def _wait_until_ready(url: str) -> None:
    def ready() -> bool:
        with suppress(httpx.HTTPError):
            return httpx.get(url).is_success
        return False

    until(ready, 30)


@pytest.mark.servers
def test_against_prometheus_itself(real: str) -> None:
    two = 'label_replace(vector(1), "a", "1", "", "") or label_replace(vector(2), "a", "2", "", "")'

    assert ask(real, "query", "vector(1.5) < 5") == 1.5
    assert ask(real, "query", "1 + 6") == 7
    assert ask(real, "query", "vector(9) < 5") is None
    assert ask(real, "holds", "vector(0) < 5") is True
    assert ask(real, "holds", "vector(9) < 5") is False
    assert ask(real, "holds", "sum(rate(no_such_metric[1m])) < 5") is False
    assert ask(real, "holds", "(sum(rate(no_such_metric[1m])) or vector(0)) < 5") is True
    assert ask(real, "holds", "vector(0) / vector(0)") is False
    assert ask(real, "holds", f"max({two}) < 5") is True
    with pytest.raises(PrometheusError, match="2 series"):
        ask(real, "holds", f"({two}) < 5")
    with pytest.raises(PrometheusError, match="parse error"):
        ask(real, "holds", "sum(")
    with pytest.raises(PrometheusError, match="matrix"):
        ask(real, "query", "up[1m]")
    with pytest.raises(InvalidGuardrail, match="scalar"):
        ask(real, "holds", "1 + 1")
