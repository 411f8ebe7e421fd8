"""Lineages of replayed requests: from the service, from Jaeger, from spans that are sent to us."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request, Response

from ldfi.cli.ports import free_port
from ldfi.errors import InvalidScenario, Unreachable
from ldfi.lineage.outline import Outline
from ldfi.scenarios.reproduction import Attempt
from ldfi.scenarios.traces import Jaeger, Service, listening, with_lineages
from ldfi.testing.live_service import served
from tests.scenarios.replayed import TRACE, replayed

POINT = "api>http:GET:layout/layout"
FOUND = (Outline(POINT, failed=True, fired=("error",)),)
ATTEMPT = Attempt(True, TRACE, 200, None, 0.1)


def test_jaeger_gives_a_trace() -> None:
    jaeger = FastAPI()
    tags = [{"key": "fit.point", "value": POINT}, {"key": "fit.fired", "value": "error"}]
    client = {"key": "span.kind", "value": "client"}
    span = {"traceID": TRACE, "startTime": 1, "duration": 2, "processID": "p"}
    spans: list[dict[str, Any]] = [
        {**span, "spanID": "a" * 16, "operationName": "boot", "tags": [], "references": []},
        {
            **span,
            "spanID": "b" * 16,
            "operationName": "GET",
            "tags": [*tags, client, {"key": "error", "value": True}],
            "references": [{"refType": "CHILD_OF", "traceID": TRACE, "spanID": "a" * 16}],
        },
    ]
    trace = {"traceID": TRACE, "spans": spans, "processes": {"p": {"serviceName": "api"}}}

    @jaeger.get("/api/traces/{trace_id}", response_model=None)
    def of(trace_id: str) -> dict[str, Any] | Response:
        return {"data": [trace]} if trace_id == TRACE else Response(status_code=404)

    with served(jaeger) as url:
        assert asyncio.run(Jaeger(url).find(TRACE)) == FOUND
        assert asyncio.run(Jaeger(url).find("0" * 32)) is None
    with pytest.raises(Unreachable, match="Jaeger at"):
        asyncio.run(Jaeger("http://127.0.0.1:1").find(TRACE))


def test_the_service_gives_a_lineage_to_those_who_may_see_it() -> None:
    service = FastAPI()

    @service.get("/api/v1/replays/{trace_id}", response_model=None)
    def of(trace_id: str, request: Request) -> dict[str, Any] | Response:
        if request.headers.get("authorization") != "Bearer t0ken":
            return Response("no", 401)
        if trace_id != TRACE:
            return Response(status_code=404)
        return {"calls": [call.to_json() for call in FOUND]}

    with served(service) as url:
        assert asyncio.run(Service(url, "t0ken").find(TRACE)) == FOUND
        assert asyncio.run(Service(url, "t0ken").find("0" * 32)) is None
        with pytest.raises(Unreachable, match="answers 401: no"):
            asyncio.run(Service(url, "other").find(TRACE))


@pytest.mark.parametrize("zipped", [False, True])
def test_spans_that_are_sent_to_us(zipped: bool) -> None:
    address = f"127.0.0.1:{free_port()}"
    body = json.dumps(replayed(POINT)).encode()
    headers = {"content-type": "application/json"}
    if zipped:
        body, headers = gzip.compress(body), {**headers, "content-encoding": "gzip"}

    with listening(address, quiet=0.1) as listener:
        to = f"http://{address}/v1/traces"
        assert httpx.post(to, content=body, headers=headers).json() == {}
        assert httpx.post(to, content=b"\xff\xff").status_code == 400
        (seen,) = asyncio.run(with_lineages([ATTEMPT], listener, patience=20))

    assert seen.lineage == FOUND
    assert seen.fired == frozenset({f"error@{POINT}"})


def test_what_never_comes_is_not_known() -> None:
    with listening(f"127.0.0.1:{free_port()}") as listener:
        (seen,) = asyncio.run(with_lineages([ATTEMPT], listener, patience=0.3))

    assert seen.lineage is None
    assert seen.fired is None


def test_a_trace_that_still_grows_is_waited_for() -> None:
    class Growing:
        name, quiet, asked = "growing", 0.6, 0

        async def find(self, trace_id: str) -> tuple[Outline, ...] | None:
            self.asked += 1
            return FOUND[:1] * min(self.asked, 3)

    (seen,) = asyncio.run(with_lineages([ATTEMPT], Growing(), patience=20))

    assert seen.lineage is not None
    assert len(seen.lineage) == 3


def test_an_address_that_is_none() -> None:
    with pytest.raises(InvalidScenario, match="give HOST:PORT"), listening("here"):
        pass
