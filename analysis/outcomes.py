"""What users saw, where somebody wrote it down: a file of JSON lines, one request a line.

A line needs a trace id (``trace_id``, ``traceID`` or ``traceId``) and says how the request ended:
``success`` (true or false), ``outcome`` (``success`` or ``failure``), or the HTTP ``status`` and
perhaps the ``body`` of the answer. Status codes lie: an answer of 200 whose body is ``null`` or
carries an error is a failure. ``fault`` may tell which faults somebody injected on the way,
``[{"at": "ratings", "fault": 503, "nth": [0]}]``; there is no proof of that in the trace.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldfi.lineage.readers import ids

MAX_LINE = 1 << 20
"""Bytes of one line. A trace file may be one line of gigabytes; that is never read as outcomes."""

_TRACE_IDS = ("trace_id", "traceID", "traceId")


@dataclass(frozen=True, slots=True)
class Told:
    """One line. ``success`` None: the request was refused, or the line does not say."""

    success: bool | None
    faults: frozenset[str]


def read_outcomes(path: Path) -> dict[str, Told]:
    """Read what was told of each trace, by its id. Raises ValueError for a file without any such
    line."""
    with path.open("rb") as start:
        zipped = start.read(2) == b"\x1f\x8b"
    found = {}
    with gzip.open(path) if zipped else path.open("rb") as lines:
        while line := lines.readline(MAX_LINE):
            read = _read(line)
            if read is not None:
                found[read[0]] = read[1]
            elif not found:
                break
    if not found:
        raise ValueError(
            f"{path} holds no outcomes; write a line of JSON for each, with trace_id and success"
        )
    return found


def _read(line: bytes) -> tuple[str, Told] | None:
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, Mapping) or not {"success", "outcome", "status"} & told.keys():
        return None
    trace_id = next((found for key in _TRACE_IDS if (found := ids.trace_id(told.get(key)))), None)
    return (trace_id, Told(_success(told), _faults(told.get("fault")))) if trace_id else None


def _success(told: Mapping[str, Any]) -> bool | None:
    if isinstance(told.get("success"), bool):
        return bool(told["success"])
    if told.get("outcome") in {"success", "failure"}:
        return bool(told["outcome"] == "success")
    status = told.get("status")
    if not isinstance(status, int) or 400 <= status < 500:
        return None
    return status < 400 and not _carries_error(told.get("body"))


def _carries_error(body: object) -> bool:
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except (ValueError, RecursionError):
            return False
        if body is None:
            return True
    return isinstance(body, Mapping) and bool(body.get("error") or body.get("errors"))


def _faults(faults: Any) -> frozenset[str]:
    listed = faults if isinstance(faults, list) else []
    return frozenset(_fault(each) for each in listed if isinstance(each, Mapping) and "at" in each)


def _fault(fault: Mapping[str, Any]) -> str:
    kind = "delay" if str(fault.get("fault", "")).startswith("delay") else "error"
    nth = fault.get("nth")
    which = "#" + ",".join(map(str, nth)) if isinstance(nth, list) else ""
    return f"{kind}@{fault['at']}{which}"
