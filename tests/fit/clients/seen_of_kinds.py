"""What the callers of each client see of each kind of fault. ``test_kinds`` proves every entry, and
the tests of the clients by themselves those of ``BY_THEMSELVES``.

``docs/generate.py`` makes the table of ``docs/injection-points.md`` of it, and refuses an entry
that no test is parametrized with (``proofs``). A kind that stands here for none of a client's calls
does nothing there.
"""

from __future__ import annotations

from typing import Final

_ANSWERS: Final = {
    "status:404": "404",
    "status:503": "503",
    "empty": "200",
    "corrupt": "200",
    "slow:1": "200",
}

SEEN: Final[dict[str, dict[str, str]]] = {
    "httpx": {
        "refused": "httpx.ConnectError",
        "reset": "httpx.ReadError",
        "timeout": "httpx.ReadTimeout",
        **_ANSWERS,
        "truncated": "httpx.RemoteProtocolError",
    },
    "httpx2": {
        "refused": "httpx2.ConnectError",
        "reset": "httpx2.ReadError",
        "timeout": "httpx2.ReadTimeout",
        **_ANSWERS,
        "truncated": "httpx2.RemoteProtocolError",
    },
    "requests": {
        "refused": "requests.exceptions.ConnectionError",
        "reset": "requests.exceptions.ConnectionError",
        "timeout": "requests.exceptions.ReadTimeout",
        **_ANSWERS,
        "truncated": "requests.exceptions.ChunkedEncodingError",
    },
    "urllib3": {
        "refused": "urllib3.exceptions.NewConnectionError",
        "reset": "urllib3.exceptions.ProtocolError",
        "timeout": "urllib3.exceptions.ReadTimeoutError",
        **_ANSWERS,
        "truncated": "urllib3.exceptions.ProtocolError",
    },
    "http.client": {
        "refused": "builtins.ConnectionRefusedError",
        "reset": "builtins.ConnectionResetError",
        "timeout": "builtins.TimeoutError",
        **_ANSWERS,
        "truncated": "http.client.IncompleteRead",
    },
    "urllib.request": {
        "refused": "urllib.error.URLError",
        "reset": "builtins.ConnectionResetError",
        "timeout": "builtins.TimeoutError",
        **_ANSWERS,
        "truncated": "http.client.IncompleteRead",
    },
    "aiohttp": {
        "refused": "aiohttp.client_exceptions.ClientConnectorError",
        "reset": "aiohttp.client_exceptions.ClientOSError",
        "timeout": "aiohttp.client_exceptions.SocketTimeoutError",
        **_ANSWERS,
        "truncated": "aiohttp.client_exceptions.ClientPayloadError",
    },
    "gRPC": {
        "refused": "grpc._channel._InactiveRpcError UNAVAILABLE",
        "timeout": "grpc._channel._InactiveRpcError DEADLINE_EXCEEDED",
        "grpc:NOT_FOUND": "grpc._channel._InactiveRpcError NOT_FOUND",
        "grpc:UNAVAILABLE": "grpc._channel._InactiveRpcError UNAVAILABLE",
    },
    "gRPC, asyncio": {
        "refused": "grpc.aio._call.AioRpcError UNAVAILABLE",
        "timeout": "grpc.aio._call.AioRpcError DEADLINE_EXCEEDED",
        "grpc:NOT_FOUND": "grpc.aio._call.AioRpcError NOT_FOUND",
        "grpc:UNAVAILABLE": "grpc.aio._call.AioRpcError UNAVAILABLE",
    },
    "redis-py": {
        "refused": "redis.exceptions.ConnectionError",
        "reset": "redis.exceptions.ConnectionError",
        "timeout": "redis.exceptions.TimeoutError",
        "redis:loading": "redis.exceptions.BusyLoadingError",
        "redis:readonly": "redis.exceptions.ReadOnlyError",
        "redis:lost": "redis.exceptions.ConnectionError",
    },
}
"""Client → kind → the exception that its caller gets, or the status of the answer."""

SAME: Final = {
    "httpx, asyncio": "httpx",
    "httpx, in tests": "httpx",
    "httpx, asyncio, in tests": "httpx",
    "httpx2, asyncio": "httpx2",
    "redis-py, asyncio": "redis-py",
    "psycopg, asyncio": "psycopg",
    "psycopg2, DictCursor": "psycopg2",
}
"""Clients whose callers see the same as another's; messages may differ."""

BY_THEMSELVES: Final[dict[str, dict[str, str]]] = {
    "SQLAlchemy, psycopg": {
        "sql:deadlock": "OperationalError DeadlockDetected",
        "sql:serialization": "OperationalError SerializationFailure",
        "sql:readonly": "InternalError ReadOnlySqlTransaction",
        "sql:lost": "OperationalError AdminShutdown",
    },
    "psycopg": {
        "reset": "OperationalError",
        "sql:deadlock": "DeadlockDetected",
        "sql:serialization": "SerializationFailure",
        "sql:readonly": "ReadOnlySqlTransaction",
        "sql:lost": "AdminShutdown",
    },
    "psycopg2": {
        "reset": "OperationalError",
        "sql:deadlock": "DeadlockDetected",
        "sql:serialization": "SerializationFailure",
        "sql:readonly": "ReadOnlySqlTransaction",
        "sql:lost": "OperationalError",
    },
    "asyncpg": {
        "reset": "ConnectionDoesNotExistError",
        "timeout": "TimeoutError",
        "sql:deadlock": "DeadlockDetectedError",
        "sql:serialization": "SerializationError",
        "sql:readonly": "ReadOnlySQLTransactionError",
        "sql:lost": "ConnectionDoesNotExistError",
    },
    "botocore": {
        "refused": "EndpointConnectionError",
        "reset": "ConnectionClosedError",
        "timeout": "ReadTimeoutError",
        "status:404": "ClientError",
        "status:500": "ClientError",
        "empty": "200",
        "truncated": "200",
        "corrupt": "UnicodeDecodeError",
    },
    "Celery, publish": {"error": "OperationalError"},
    "Celery, result": {"error": "ConnectionError", "timeout": "TimeoutError"},
    "kafka-python, consumer": {"timeout": "{}"},
    "aiokafka": {"timeout": "NodeNotReadyError"},
    "aiokafka, consumer": {"timeout": "{}"},
    "confluent-kafka": {"timeout": "_MSG_TIMED_OUT"},
    "confluent-kafka, consumer": {"timeout": "None"},
}
"""Client that has servers of its own → kind → the same; of one that answers, its answer."""
