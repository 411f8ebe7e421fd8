"""Did a call fail? What a span says about it, in the order in which it is to be believed.

In doubt a call succeeded. A success wrongly taken for a failure leaves the support and hides a
hypothesis; a failure wrongly taken for a success only costs an experiment. Hence:

- a fault that fired here, of any kind but ``delay``: failed, whatever the codes say (a status 404
  or an empty body, too, for it was no answer of the dependency), unless the same span says that a
  later attempt of the client's own was let through;
- an answer of the class 4xx is an answer: the dependency works and said no. It is no evidence of
  what happens when the dependency is gone. Only 408, 425 and 429 speak of the dependency itself;
- ``error.type`` or an ``exception`` event alone do not make a failure where a code or a status
  says otherwise (an agent writes ``cancelled`` on calls that were answered with 200).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ldfi.kinds import OUTLASTED

STATUS_UNSET: Final = 0
STATUS_OK: Final = 1
STATUS_ERROR: Final = 2

_FAILING_4XX = frozenset({408, 425, 429})
# OK, and the codes that stand for an answer of a working service.
_GRPC_ANSWERS = frozenset(
    {
        *("0", "3", "5", "6", "7", "9", "11", "16"),
        *("ok", "invalid_argument", "not_found", "already_exists", "permission_denied"),
        *("failed_precondition", "out_of_range", "unauthenticated"),
    }
)

_GRPC_GONE = frozenset({"14", "unavailable"})
_GONE = frozenset({"KafkaTimeoutError", "InjectedFault"})
"""Names of the exceptions that ``fit`` raises for an ``error``, besides that of redis. SQLAlchemy's
OperationalError is not among them: it is raised for a lock that was waited for too long, too."""
_REFUSED = frozenset({"ClientConnectorError", "ConnectError", "NewConnectionError"})
"""What aiohttp, httpx and urllib3 raise where nobody listens. Not requests' ConnectionError: it is
raised for a connection that was torn down, too."""
_UNASKED = frozenset({"error", "refused", "reset", "empty", "truncated", "corrupt", "status:503"})
_NOBODY_THERE = frozenset(
    {
        *("status:408", "status:429", "status:502", "status:503", "status:504"),
        *("grpc:1", "grpc:cancelled", "grpc:4", "grpc:deadline_exceeded"),
        *("grpc:8", "grpc:resource_exhausted", "grpc:unavailable"),
    }
)
"""Kinds that a proxy, a limit or the caller itself may stand behind, and not the callee's work."""


def failed(status: int, fields: Mapping[str, str], exception: bool) -> bool | None:
    """Tell whether a span failed; None where it says nothing about it.

    ``status`` is OpenTelemetry's (0 unset, 1 ok, 2 error); ``exception`` tells of an escaped
    exception recorded as an event, or of an ``error`` tag.
    """
    if _injected(fields) and "let_through" not in fields:
        return True
    by_code = _by_code(fields)
    if by_code is not None:
        return by_code and status != STATUS_OK
    if status == STATUS_ERROR:
        return True
    if status == STATUS_OK:
        return False
    return True if exception else None


def kind(fields: Mapping[str, str]) -> str:
    """Tell how a call failed that did fail: which kind of fault its caller could take it for.

    Over HTTP a dependency that is gone is ``refused``, or ``status:503`` where a proxy answers for
    it. Elsewhere that is an ``error``, which nature shows as gRPC's UNAVAILABLE and as the
    exceptions that ``fit`` raises there. Everything else is a kind of its own, and so is a failure
    that says nothing of itself: no evidence is lost by that but the free one, while a handler of
    one exception taken for a handler of all hides what hurts. 500, 502 and 504 are answers of
    somebody who was there. What was injected is of the kind that it was injected as.
    """
    injected = _injected(fields)
    if injected:
        return "error" if "error" in injected else injected[0]
    rpc = fields.get("rpc_status", "").lower()
    if rpc and rpc not in _GRPC_ANSWERS:
        return "error" if rpc in _GRPC_GONE else f"grpc:{rpc}"
    status = fields.get("status", "")
    if status.isdecimal() and int(status) >= 400:
        return f"status:{status}"
    if fields.get("fired"):
        return "timeout"
    exception = fields.get("error_type", "").rpartition(".")[2]
    if exception in _REFUSED:
        return "refused"
    if exception in _GONE or (exception == "ConnectionError" and "db" in fields):
        return "error"
    return f"exception:{exception}" if exception.isidentifier() else "failed"


def answered(kind: str) -> bool:
    """Tell whether a failure of this kind is an answer of somebody who tried and failed."""
    tried = kind.startswith(("status:", "grpc:")) and not kind.startswith("status:4")
    return tried and kind.lower() not in _NOBODY_THERE


def unasked(kind: str) -> bool:
    """Tell whether a call that was made to fail so never came to its callee, which might have
    answered otherwise."""
    if kind.startswith("status:4"):
        return kind not in _NOBODY_THERE
    return kind in _UNASKED


def kinds_of(text: str) -> tuple[str, ...]:
    """Read the kinds of fault that an attribute of a span names."""
    return tuple(sorted({kind.partition("@")[0] for kind in text.replace(",", " ").split()}))


def _injected(fields: Mapping[str, str]) -> tuple[str, ...]:
    """List what fired here and is a failure; not what may be outlasted."""
    fired = fields.get("fired", "")
    return tuple(kind for kind in kinds_of(fired) if kind not in OUTLASTED) if fired else ()


def _by_code(fields: Mapping[str, str]) -> bool | None:
    rpc = fields.get("rpc_status")
    if rpc:
        return rpc.lower() not in _GRPC_ANSWERS
    code = fields.get("status", "")
    if code.isdecimal() and code != "0":
        return int(code) >= 500 or int(code) in _FAILING_4XX
    return None
