"""Did a call fail? What a span says about it, in the order in which it is to be believed.

Each way to mark a failure is read here, from the fields of :mod:`ldfi.lineage.attributes` and so
alike in all formats. In doubt a call succeeded. A success wrongly taken for a failure leaves the
support and hides a hypothesis; a failure wrongly taken for a success only costs an experiment.
Hence:

- a fault that fired here, of any kind but ``delay``: failed, whatever the codes say (a status 404
  or an empty body, too, for it was no answer of the dependency), unless the same span says that a
  later attempt of the client's own was let through;
- a **code** (of gRPC, JSON-RPC, a database, HTTP, a proxy's flags) is believed first, that of an
  inner layer before that of its transport: an answer 200 carries errors. An answer of the class 4xx
  is an answer: the dependency works and said no. It is no evidence of what happens
  when the dependency is gone. Only 408, 425 and 429 speak of the dependency itself, and 444, 460
  and 499 are no answers: nobody was there any more to take one;
- then the span's own **status**, then the other **marks**: ``error``, a type of error, an exception
  recorded as an event;
- a mark that is overruled (a 504 beside the status OK), or that may mean nothing (``cancelled``,
  which an agent writes on calls that were answered), makes a call *doubtful*. It keeps its place
  in the support, and it is suspected in a lost request in which nothing else failed.

``docs/failure-marks.md`` has the table, which is tested.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ldfi.fit.protocol.kinds import GRPC_CODES, OUTLASTED, RECORDS, words_with
from ldfi.fit.protocol.native import GONE
from ldfi.lineage.attributes import OTHER_ERROR

STATUS_UNSET: Final = 0
STATUS_OK: Final = 1
STATUS_ERROR: Final = 2

_UNANSWERED: Final = frozenset({408, 425, 429, 444, 460, 499})
"""Codes of the class 4xx that are no answer of a dependency that works."""

_HTTP: Final = re.compile(r"([1-5][0-9]{2})(?![0-9])", re.ASCII)
_NO_WORD: Final = re.compile(r"[^a-z0-9]")
_GRPC: Final = {
    "0": "OK",
    "ok": "OK",
    **{str(number): name for number, name in enumerate(GRPC_CODES, start=1)},
    **{_NO_WORD.sub("", name.lower()): name for name in GRPC_CODES},
    "canceled": "CANCELLED",
}
"""However a code of gRPC is written, without what is no letter and no digit → its name."""

_GRPC_ANSWERS: Final = frozenset(
    {
        *("OK", "INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED"),
        *("FAILED_PRECONDITION", "OUT_OF_RANGE", "UNAUTHENTICATED"),
    }
)
"""OK, and the codes that stand for an answer of a working service."""

_PROXY_FLAGS: Final = frozenset(
    {
        *("UT", "UF", "UO", "UH", "UC", "UR", "URX", "UPE", "UMSDR", "NR", "NC", "LR", "LH"),
        *("DC", "DPE", "SI", "OM", "DT", "DO", "FI", "NFCF", "DF"),
    }
)
"""What Envoy writes where it got no answer, or could not hand it on
(https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage)."""

_SQL_GONE: Final = ("08", "40", "53", "55", "57", "58", "XX", "HYT")
_SQL_WELL: Final = ("00", "01", "02")
_SQLSTATE: Final = re.compile(r"(?=[0-9A-Z]*[0-9])[0-9A-Z]{5}", re.ASCII)
"""Classes of SQLSTATE: the database could not do its work; it did, and may warn. The others say
what was wrong with the statement (https://www.postgresql.org/docs/current/errcodes-appendix.html).
"""

_JSONRPC_ANSWERS: Final = frozenset({"-32700", "-32600", "-32601", "-32602"})
_GONE = frozenset({"KafkaTimeoutError", "InjectedFault"})
"""Names of the exceptions that ``fit`` raises for an ``error``, besides that of redis. SQLAlchemy's
OperationalError is not among them: it is raised for a lock that was waited for too long, too."""
_NATURAL: Final = {
    name: word for word, record in RECORDS.items() for name in record.get("natural", ())
}
"""What clients raise of one cause → its kind. Not requests' ConnectionError: it is raised where
nobody listens, and for a connection that was torn down, too."""
_UNASKED: Final = words_with("unasked") | {*GONE}
_NOBODY_THERE = frozenset(
    {
        *("status:408", "status:429", "status:502", "status:503", "status:504"),
        *("status:444", "status:460", "status:499"),
        *("grpc:1", "grpc:cancelled", "grpc:4", "grpc:deadline_exceeded"),
        *("grpc:8", "grpc:resource_exhausted", "grpc:unavailable"),
    }
)
"""Kinds that a proxy, a limit or the caller itself may stand behind, and not the callee's work."""


def failed(status: int, fields: Mapping[str, str], exception: bool) -> bool | None:
    """Return whether a span failed; None where it says nothing about it.

    ``status`` is OpenTelemetry's (0 unset, 1 ok, 2 error); ``exception`` tells of an exception
    recorded as an event.
    """
    if _injected(fields) and "let_through" not in fields:
        return True
    status = _status(status, fields)
    by_code = _by_code(fields)
    if by_code is not None:
        return by_code and status != STATUS_OK
    if status == STATUS_ERROR:
        return True
    if status == STATUS_OK:
        return False
    return True if exception or _marked(fields) else None


def doubtful(fields: Mapping[str, str]) -> bool:
    """Return whether something speaks for a failure of a span that is not held to have failed."""
    said = _word(fields.get("said", "")) == "ERROR" or _by_code(fields) is True
    typed = not {fields.get("error_type", ""), fields.get("thrown", "")} <= _NO_ERROR
    weak = fields.get("canceled") == "true" or _database(fields.get("db_status", "")) is False
    cut = _unanswered(fields) or set(fields.get("status", "")) == {"0"}
    return said or weak or typed or cut or _marked(fields)


def kind(fields: Mapping[str, str]) -> str:
    """Return how a call failed that did fail: which kind of fault its caller could take it for.

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
    rpc = _grpc(fields)
    if rpc and rpc not in _GRPC_ANSWERS:
        return "error" if rpc == "UNAVAILABLE" else f"grpc:{rpc}"
    status = _http(fields)
    if status >= 400:
        return f"status:{status}"
    if fields.get("fired"):
        return "timeout"
    given = fields.get("error_type") or fields.get("thrown", "")
    exception = given.rpartition(".")[2]
    if exception in _NATURAL:
        return _NATURAL[exception]
    if exception in _GONE or (exception == "ConnectionError" and "db" in fields):
        return "error"
    known = exception.isidentifier() and exception != OTHER_ERROR
    return f"exception:{exception}" if known else "failed"


def answered(kind: str) -> bool:
    """Return whether a failure of this kind is an answer of somebody who tried and failed."""
    tried = kind.startswith(("status:", "grpc:")) and not kind.startswith("status:4")
    return tried and kind.lower() not in _NOBODY_THERE


def unasked(kind: str) -> bool:
    """Return whether a call that was made to fail so never came to its callee, which might have
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


def _status(status: int, fields: Mapping[str, str]) -> int:
    """Read OpenTelemetry's status, also where an exporter to Jaeger or Zipkin wrote it as a tag;
    2 and above were failures in OpenCensus as well."""
    said = _word(fields.get("said", "") or fields.get("census", ""))
    if status == STATUS_UNSET and said in _WORDS:
        return _WORDS[said]
    census = _GRPC.get(_NO_WORD.sub("", fields.get("census", "").lower()), "OK")
    return STATUS_ERROR if status == STATUS_UNSET and census not in _CENSUS_WELL else status


def _word(said: str) -> str:
    """Read a status as it is written in text: ``Error``, ``STATUS_CODE_ERROR``."""
    return said.upper().removeprefix("STATUS_CODE_")


_WORDS: Final = {"ERROR": STATUS_ERROR, "OK": STATUS_OK}
_CENSUS_WELL: Final = _GRPC_ANSWERS | {"CANCELLED"}
"""CANCELLED has the number that OpenTelemetry's OK has."""


def _by_code(fields: Mapping[str, str]) -> bool | None:
    """Return whether a call failed by the codes that it says; None for no code."""
    rpc = _grpc(fields)
    if rpc:
        return rpc not in _GRPC_ANSWERS
    jsonrpc = fields.get("jsonrpc_error", "")
    inner = jsonrpc.startswith("-32") and jsonrpc not in _JSONRPC_ANSWERS
    if inner or _database(fields.get("db_status", "")):
        return True
    code = _http(fields)
    if code:
        return code >= 500 or code in _UNANSWERED
    if jsonrpc:
        return False
    return True if _unanswered(fields) else None


def _unanswered(fields: Mapping[str, str]) -> bool:
    """Return whether a proxy got no whole answer, or could not hand it on."""
    return any(flag in _PROXY_FLAGS for flag in fields.get("proxied", "").split(","))


def _grpc(fields: Mapping[str, str]) -> str:
    """Read a code of gRPC as its name; empty for none. One that nobody knows stays as it is."""
    given = fields.get("rpc_status", "")
    if not given:  # the conventions write the code as the error's type, too
        word = fields.get("error_type", "") if "rpc" in fields else ""
        return _GRPC.get(_NO_WORD.sub("", word.lower()), "")
    number = _NUMBER.match(given)
    if number is not None:
        return _GRPC.get(number[1], "")  # above 16 it is one of HTTP
    return _GRPC.get(_NO_WORD.sub("", given.rpartition(".")[2].lower()), given.lower())


_NUMBER: Final = re.compile(r"\(?([0-9]+)", re.ASCII)


def _http(fields: Mapping[str, str]) -> int:
    """Read a status of HTTP; 0 for none, as proxies write where nothing came back."""
    for field in ("status", "rpc_status", "error_type"):
        found = _HTTP.match(fields.get(field, ""))
        if found is not None:
            return int(found[1])
    return 0


def _database(code: str) -> bool | None:
    """Return whether the code of a database says that it could not do its work, True, or anything
    else that is no success, False."""
    if not code.strip("0") or code.lower() == "ok":
        return None
    if _SQLSTATE.fullmatch(code):
        return None if code.startswith(_SQL_WELL) else code.startswith(_SQL_GONE)
    if _HTTP.fullmatch(code):
        return None if int(code) < 400 else int(code) >= 500 or int(code) in _UNANSWERED
    return False


def _marked(fields: Mapping[str, str]) -> bool:
    """Return whether something else than a code or a status marks a failure."""
    types = {fields.get("error_type", ""), fields.get("thrown", "")} - _NO_ERROR
    return (
        any(fields.get(flag) == "true" for flag in ("error", "message", "fault", "throttle"))
        or any(_CANCELLED.search(each) is None for each in types)
        or fields.get("answer_class", "").upper() == "SERVER_ERROR"
        or fields.get("job", "").upper() in {"FAILURE", "RETRY"}
    )


_CANCELLED: Final = re.compile(r"cancel|abort", re.IGNORECASE)
"""What a caller writes that wanted no more: of an answer that it had, too."""

_NO_ERROR: Final = frozenset({"", "none", "None", "null"})
