"""OTLP over gRPC, on a port of its own: each export is a request of our own ``POST /v1/traces``.

There is one way in: tokens, limits, namespaces, decoding and whoever leads are as over HTTP, and a
refusal is the same one in gRPC's words. What is gRPC's own is here: a token is asked for before a
byte of the message is read (so a unary call is taken as a stream of one message), and messages come
in still compressed, because gRPC would unzip them without a limit.

https://opentelemetry.io/docs/specs/otlp/#otlpgrpc
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from starlette.types import ASGIApp, Message
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from ldfi.errors import Conflict
from ldfi.experiments.api.connections import HEADER_SECONDS, room
from ldfi.experiments.api.decoding import EITHER, MAX_BODY
from ldfi.experiments.api.front_door import cannot_listen, front_doors

_log = logging.getLogger("ldfi")

PORT: Final = 4317
"""Where exporters look unless they are told otherwise."""

MOST: Final = 64
"""Exports that are taken in at once; others are asked to come again."""

GRACE: Final = 3.0
"""Seconds for which exports under way go on when the service ends."""

_EXPORT: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_HEALTH: Final = "/grpc.health.v1.Health/Check"
_SERVING, _NOT_SERVING = b"\x08\x01", b"\x08\x02"
"""``HealthCheckResponse`` as protobuf."""

_PASSED: Final = ("authorization", "ldfi-namespace", "x-forwarded-for", "x-request-id")
"""Metadata that are headers of the request, too."""

CODES: Final[Mapping[int, str]] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "UNIMPLEMENTED",
    408: "DEADLINE_EXCEEDED",
    413: "RESOURCE_EXHAUSTED",
    415: "INVALID_ARGUMENT",
    422: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "UNAVAILABLE",
}
"""What a status of HTTP is in gRPC; others are ``INTERNAL``. With a ``Retry-After`` there is a
``RetryInfo``, and only then do exporters try again what is ``RESOURCE_EXHAUSTED``."""


class _Answered(NamedTuple):
    """What our own application answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def retry_after(self) -> int:
        """Seconds to wait; 0 where nothing is said of trying again."""
        said = self.headers.get("retry-after", "")
        return int(said) if said.isdecimal() else 0

    @property
    def detail(self) -> str:
        """Return the reason of the failure, for people."""
        try:
            problem = json.loads(self.body)
            return f"{problem['title']}: {problem.get('detail', '')}".removesuffix(": ")
        except (ValueError, TypeError, KeyError):
            return f"HTTP {self.status}"


class OtlpGrpc:
    """Takes exports for ``app`` on ``host`` and ``port`` (0: any free one; None: on :data:`PORT`
    where that can be had, and not at all elsewhere). ``bound``: the port, 0 where nobody listens;
    ``exports``: how many have come; ``why_not``: why nobody listens, in a sentence."""

    def __init__(self, app: ASGIApp, host: str, port: int | None) -> None:
        trusted = os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1")
        self.bound = self.exports = self._under_way = 0
        self.why_not = ""
        believing: Any = ProxyHeadersMiddleware  # its types of ASGI are not Starlette's
        self._app = believing(app, trusted)
        self._host, self._port = host, port

    @property
    def status(self) -> dict[str, Any]:
        """Return where it listens and what has come, by the names of `GET /status`."""
        return {"grpc_port": self.bound, "grpc_exports": self.exports, "grpc_off": self.why_not}

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Take exports in until the block ends, and those under way to their end. Raises Conflict
        where a port was asked for and cannot be had."""
        server = None
        if self._port is None and find_spec("grpc") is None:
            self.why_not = "grpcio is not installed: pip install 'ldfi[grpc]'"
        else:
            try:
                server = await self._started()
            except Conflict as error:
                if self._port is not None:
                    raise
                self.why_not = f"{error}; set LDFI_GRPC_PORT to another port, or to off"
        if server is None:
            _log.info("OTLP over gRPC is off: %s", self.why_not)
            yield
            return
        _log.info("OTLP over gRPC at %s, port %d", self._host, self.bound)
        try:
            yield
        finally:
            await server.stop(GRACE)
            self.bound = 0

    async def _started(self) -> Any:
        import grpc
        from grpc import aio

        host, port = self._host, PORT if self._port is None else self._port
        for each in front_doors(host, port) if port else ():  # says why, as gRPC does not
            each.close()
        handler = _handler(grpc, self._export, self._health)
        server = aio.server(handlers=[handler], options=_options(grpc))
        try:
            bound = server.add_insecure_port(
                f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            )
        except RuntimeError as error:
            raise cannot_listen("grpc_port", host, port, OSError(str(error))) from error
        await server.start()
        self.bound = bound
        return server

    async def _export(self, messages: AsyncIterator[bytes], context: Any) -> bytes:
        self.exports += 1
        if self._under_way >= MOST:
            busy = json.dumps({"title": "busy", "detail": f"{MOST} exports are being taken in"})
            await _refuse(context, _Answered(503, {"retry-after": "1"}, busy.encode()))
        self._under_way += 1
        try:
            answer = await self._asked("POST", "/v1/traces", context, messages)
        finally:
            self._under_way -= 1
        if answer.status != 200:
            await _refuse(context, answer)
        return answer.body

    async def _health(self, messages: AsyncIterator[bytes], context: Any) -> bytes:
        answer = await self._asked("GET", "/readyz", context, messages)
        return _SERVING if answer.status == 200 else _NOT_SERVING

    async def _asked(
        self, method: str, path: str, context: Any, messages: AsyncIterator[bytes]
    ) -> _Answered:
        """Ask our own application what a call asks of us."""
        received, status, headers, pieces = False, 500, {}, []

        async def receive() -> Message:
            nonlocal received
            if received:  # nothing more comes, and who has gone is cancelled by gRPC
                await asyncio.Event().wait()
            received = True
            async for message in messages:
                return {"type": "http.request", "body": message, "more_body": False}
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            nonlocal status, headers
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = {
                    name.decode("latin-1").lower(): value.decode("latin-1")
                    for name, value in message.get("headers", ())
                }
            else:
                pieces.append(message.get("body", b""))

        await self._app(_scope(method, path, context), receive, send)
        return _Answered(status, headers, b"".join(pieces))


def _scope(method: str, path: str, context: Any) -> dict[str, Any]:
    passed = [
        (name.encode(), value.encode("latin-1", "replace"))
        for name, value in context.invocation_metadata() or ()
        if name in _PASSED and isinstance(value, str)
    ]
    coded = [(b"content-type", b"application/x-protobuf"), (b"content-encoding", EITHER.encode())]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "2",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [*passed, *coded],
        "client": client_of(context.peer()),
        "server": None,
        "state": {},
    }


def client_of(peer: str) -> tuple[str, int] | None:
    """Return address and port of whoever calls, as ASGI has them: ``ipv6:%5B::1%5D:4242`` is
    ``("::1", 4242)``; None where it has none."""
    kind, _, where = unquote(peer).partition(":")
    host, _, port = where.rpartition(":")
    if kind not in {"ipv4", "ipv6"} or not port.isdecimal():
        return None
    return host.strip("[]"), int(port)


def _handler(grpc: Any, export: Any, health: Any) -> Any:
    unary = grpc.stream_unary_rpc_method_handler
    known = {_EXPORT: unary(export), _HEALTH: unary(health)}

    async def unknown(_messages: AsyncIterator[bytes], context: Any) -> None:
        said = f"only traces are taken here ({_EXPORT}); metrics and logs go elsewhere"
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, said)

    class Handler(grpc.GenericRpcHandler):  # type: ignore[misc] # gRPC has no types
        def service(self, call: Any) -> Any:
            return known.get(call.method, unary(unknown))

    return Handler()


def _options(grpc: Any) -> Iterable[tuple[str, int]]:
    """Bound what a stranger can make gRPC hold, as is done over HTTP."""
    plain_or_gzip = 1 << grpc.Compression.NoCompression | 1 << grpc.Compression.Gzip
    return {
        "grpc.max_receive_message_length": MAX_BODY,
        "grpc.per_message_decompression": 0,
        "grpc.compression_enabled_algorithms_bitset": plain_or_gzip,
        "grpc.max_allowed_incoming_connections": share(room()),
        "grpc.max_concurrent_streams": MOST,
        "grpc.server_handshake_timeout_ms": int(HEADER_SECONDS * 1000),
        "grpc.so_reuseport": 0,  # a port that is taken is refused
    }.items()


def share(connections: int) -> int:
    """Return how many of the connections that a process may have are for gRPC."""
    return connections // 4


async def _refuse(context: Any, answer: _Answered) -> None:
    """End a call as a request over HTTP was answered."""
    import grpc
    from google.rpc.error_details_pb2 import RetryInfo
    from google.rpc.status_pb2 import Status

    code = grpc.StatusCode[CODES.get(answer.status, "INTERNAL")]
    trailing: tuple[tuple[str, bytes], ...] = ()
    if answer.retry_after:
        again = RetryInfo()
        again.retry_delay.seconds = answer.retry_after
        status = Status(code=code.value[0], message=answer.detail)
        status.details.add().Pack(again)
        # The first is what the specification names, the second what Python's exporter reads.
        trailing = (
            ("grpc-status-details-bin", status.SerializeToString()),
            ("google.rpc.retryinfo-bin", again.SerializeToString()),
        )
    await context.abort(code, answer.detail, trailing)
