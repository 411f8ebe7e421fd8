"""botocore, and with it boto3: each attempt of an operation of AWS, or of what speaks like it.

botocore sends through urllib3, so the point and what it does are those of
:mod:`ldfi.fit.clients.requests_urllib3`, beneath botocore's retries. Here it is given the name that
the lineage reads from the operation's span: there the operation is the call, not the request.
SQS and SNS are messages to the lineage, and keep the names of their requests.
"""

from __future__ import annotations

from typing import Any, Final

from botocore.endpoint import Endpoint

from ldfi.fit import patching
from ldfi.fit.clients import http
from ldfi.fit.inject import armed
from ldfi.fit.protocol.points import Point, address, rpc_point
from ldfi.fit.protocol.urls import split_url

_MESSAGES: Final = frozenset({"SQS", "SNS"})
_HTTPS: Final = 443


def patch() -> None:
    """Name the requests of an operation after it."""
    patching.put(Endpoint, "_get_response", _sync)


def _sync(original: Any) -> Any:
    def get_response(endpoint: Any, request: Any, operation: Any, *rest: Any) -> Any:
        if not armed():
            return original(endpoint, request, operation, *rest)
        with http.called(lambda service: _name(service, endpoint, operation)):
            return original(endpoint, request, operation, *rest)

    return get_response


def _name(service: str, endpoint: Any, operation: Any) -> str | None:
    called = str(operation.service_model.service_id)
    if called in _MESSAGES:
        return None
    if called == "DynamoDB":
        return str(Point(service, "db", operation.name, "dynamodb", f"/{called}.{operation.name}"))
    parts = split_url(endpoint.host)
    peer = address(parts.host, parts.port or _HTTPS)
    return rpc_point(service, f"{called}/{operation.name}", peer)
