"""The log of a process: lines for people, or one JSON object a line for programs.

What a line is about (a campaign, an experiment, a trace, an incident) is given with ``extra`` by
whoever logs it; which request it was written for is known by itself (:data:`request_id`).
"""

from __future__ import annotations

import json
import logging
import threading
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, Literal

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

TEXT: Final = "%(asctime)s %(name)s %(levelname)s %(message)s"
IDS: Final = ("campaign", "experiment", "trace", "incident")
"""What a line may be about: names for ``extra``, and keys of the object."""

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The request that is being answered; empty where none is."""

_log = logging.getLogger("ldfi")


class JsonLines(logging.Formatter):
    """Makes of each record one line of JSON, in ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        """See :meth:`logging.Formatter.format`."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: str(getattr(record, name)) for name in IDS if hasattr(record, name)}
        if request := request_id.get():
            line["request"] = request
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = record.stack_info
        return json.dumps(line)


def set_up(form: LogFormat, level: LogLevel) -> None:
    """Write what we log from this level on to standard error, and warnings of libraries.

    Less of a library is never shown: httpx logs URLs, and Slack's is a secret; its transport logs
    headers, and Kafka's client a page for each rebalance.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    written = logging.StreamHandler()
    written.setFormatter(JsonLines() if form == "json" else logging.Formatter(TEXT))
    logging.basicConfig(level=max(number, logging.WARNING), handlers=[written])
    _log.setLevel(number)
    logging.captureWarnings(True)
    threading.excepthook = _died


def _died(what: threading.ExceptHookArgs) -> None:
    """Log what ended a thread, which would else be written between the lines."""
    if what.exc_value is not None and not isinstance(what.exc_value, SystemExit):
        name = what.thread.name if what.thread is not None else "?"
        _log.critical("the thread %s has died", name, exc_info=what.exc_value)
