"""The witness of the demo's traffic: it stands between the demo and the service, and takes notes.

Whatever the demo sends to the service passes through here: spans and device metrics, which are
taken at once and passed on when the service is up; and the edge's questions for rules, which are
passed on as they are, or answered with 502. From spans and metrics alone it knows which device was
treated for which experiment, and when a fault fired; the service has no part in that.

    python -m soak.recorder --port PORT --service URL --notes FILE
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ldfi.cli.processes import end_with_parent
from ldfi.lineage.readers.otlp import decode_protobuf
from soak.treated import Treated, note

KEPT_BODIES = 3_000
"""Bodies that wait for the service while it is down; the rest it never sees."""

SENDERS = 8
"""Bodies on their way at once."""

LATEST_SECONDS = 30.0
"""After the first span of a treated request, for its others and the device's report to come. What
comes later counts as a request of its own, of which nobody knows the experiment."""

UNREPORTED = "nobody"
"""The device of a treated request of which no device has reported."""


@dataclass(slots=True)
class _Request:
    seen: float
    experiment: str = ""
    stamped: float = 0.0
    fired: float | None = None


@dataclass(slots=True)
class Witness:
    """Puts together what it sees of each request, and notes those that were treated."""

    notes: TextIO
    _requests: dict[str, _Request] = field(default_factory=dict)
    _devices: dict[str, str] = field(default_factory=dict)

    def see_spans(self, body: bytes, now: float) -> None:
        """Spans of any service. Only those under treatment matter."""
        for span in decode_protobuf(body).spans:
            what = span.operation
            if what.arm != "treatment" and not what.fired:
                continue
            request = self._requests.setdefault(span.trace_id, _Request(now))
            start = span.start / 1e9
            if what.arm == "treatment":
                request.experiment = what.experiment
                request.stamped = min(start, request.stamped or start)
            if what.fired:
                request.fired = max(start, request.fired or start)

    def see_metrics(self, metrics: list[dict[str, str]]) -> None:
        """Return who asked for what."""
        for each in metrics:
            self._devices[each["trace_id"]] = each["device"]

    def write(self, before: float) -> None:
        """Note the treated requests whose first span came before that."""
        done = [trace for trace, request in self._requests.items() if request.seen < before]
        whole = [
            (self._devices.get(trace, UNREPORTED), self._requests.pop(trace)) for trace in done
        ]
        note(
            self.notes,
            (Treated(each.experiment, device, each.stamped, each.fired) for device, each in whole),
        )


class Recorder:
    """The application. Bodies are passed on in about their order; they wait until the service is
    up."""

    def __init__(self, service: str, witness: Witness) -> None:
        self._service, self._witness = service, witness
        self._bodies: asyncio.Queue[tuple[str, dict[str, str], bytes]] = asyncio.Queue(KEPT_BODIES)

    def application(self) -> Starlette:
        """As ASGI."""
        routes = [
            Route("/v1/traces", self._traces, methods=["POST"]),
            Route("/api/v1/device-metrics", self._metrics, methods=["POST"]),
            Route("/api/v1/edge/rules", self._asked),
            Route("/api/v1/edge/asks", self._asked, methods=["POST"]),
        ]
        return Starlette(routes=routes, lifespan=self._running)

    @asynccontextmanager
    async def _running(self, _app: Starlette) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        async with httpx.AsyncClient(base_url=self._service, trust_env=False) as self._client:
            tasks = [loop.create_task(self._pass_on()) for _ in range(SENDERS)]
            tasks.append(loop.create_task(self._write()))
            yield
            for task in tasks:
                task.cancel()
        self._witness.write(float("inf"))

    async def _traces(self, request: Request) -> Response:
        body = await request.body()
        self._witness.see_spans(body, asyncio.get_running_loop().time())
        return self._taken("/v1/traces", request, body, "application/x-protobuf", b"")

    async def _metrics(self, request: Request) -> Response:
        body = await request.body()
        self._witness.see_metrics((await request.json())["metrics"])
        return self._taken("/api/v1/device-metrics", request, body, "application/json", b"{}")

    def _taken(
        self, path: str, request: Request, body: bytes, kind: str, answer: bytes
    ) -> Response:
        headers = {
            name: value
            for name, value in request.headers.items()
            if name in {"authorization", "content-type", "content-encoding"}
        }
        if not self._bodies.full():
            self._bodies.put_nowait((path, headers, body))
        return Response(answer, media_type=kind)

    async def _asked(self, request: Request) -> Response:
        """Pass on what an edge asks, and the answer as it comes: it may be a stream."""
        asked = self._client.build_request(
            request.method,
            f"{request.url.path}?{request.url.query}",
            headers={
                name: value
                for name, value in request.headers.items()
                if name in {"authorization", "accept", "content-type"}
            },
            content=await request.body(),
            timeout=15.0,
        )
        try:
            answer = await self._client.send(asked, stream=True)
        except httpx.TransportError:
            return Response(status_code=502)
        kind = answer.headers["content-type"]
        return StreamingResponse(_pieces(answer), answer.status_code, media_type=kind)

    async def _pass_on(self) -> None:
        while True:
            path, headers, body = await self._bodies.get()
            while not await self._delivered(path, headers, body):
                await asyncio.sleep(0.1)

    async def _delivered(self, path: str, headers: dict[str, str], body: bytes) -> bool:
        try:
            answer = await self._client.post(path, content=body, headers=headers, timeout=5.0)
        except httpx.TransportError:
            return False
        return answer.status_code < 500

    async def _write(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            self._witness.write(asyncio.get_running_loop().time() - LATEST_SECONDS)


async def _pieces(answer: httpx.Response) -> AsyncIterator[bytes]:
    """Pass a body on; it just ends when the service is gone."""
    try:
        async for piece in answer.aiter_raw():
            yield piece
    except httpx.TransportError:
        pass
    finally:
        await answer.aclose()


def main() -> None:
    """Record until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m soak.recorder")
    parser.add_argument("--port", required=True, type=int)
    parser.add_argument("--service", required=True)
    parser.add_argument("--notes", required=True, type=Path)
    options = parser.parse_args()
    end_with_parent()
    with options.notes.open("a") as notes:
        recorder = Recorder(options.service, Witness(notes))
        uvicorn.run(
            recorder.application(),
            port=options.port,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=1,
        )


if __name__ == "__main__":
    main()
