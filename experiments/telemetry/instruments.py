"""What is counted and timed where it happens; the rest is looked up.

One set for the process, as Prometheus has it. Labels take few values: a route's template, never a
path, and never the name of a request class, an injection point or a device.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from sqlalchemy import Connection, Engine, event

Type = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True)
class Metric:
    """What a metric is called and means. Times are in seconds."""

    name: str
    type: Type
    meaning: str
    labels: tuple[str, ...] = ()


REGISTRY: Final = CollectorRegistry()
METRICS: Final[list[Metric]] = []
"""Everything in :data:`REGISTRY`."""


def _counter(name: str, meaning: str, labels: Sequence[str] = ()) -> Counter:
    METRICS.append(Metric(name, "counter", meaning, tuple(labels)))
    return Counter(name, meaning, labels, registry=REGISTRY)


def _gauge(name: str, meaning: str) -> Gauge:
    METRICS.append(Metric(name, "gauge", meaning))
    return Gauge(name, meaning, registry=REGISTRY)


def _histogram(
    name: str, meaning: str, buckets: Sequence[float], labels: Sequence[str] = ()
) -> Histogram:
    METRICS.append(Metric(name, "histogram", meaning, tuple(labels)))
    return Histogram(name, meaning, labels, buckets=buckets, registry=REGISTRY)


_SHORT = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

TICK_SECONDS: Final = _histogram(
    "ldfi_tick_seconds",
    "How long one step of the engine took. It is to make twenty a second, so 0.05 is all it has.",
    _SHORT,
)
TICK_LAG_SECONDS: Final = _histogram(
    "ldfi_tick_lag_seconds", "How much later than it was due a step began.", _SHORT
)
TICKS_FAILED: Final = _counter(
    "ldfi_ticks_failed_total", "Steps that failed. Each has disarmed everything; the log says why."
)
PROPOSE_SECONDS: Final = _histogram(
    "ldfi_propose_seconds",
    "How long a campaign took to say what to try next: mostly the solver. Counted whenever a "
    "running campaign is asked, also where nothing was to be tried.",
    _SHORT,
)
TRANSACTION_SECONDS: Final = _histogram(
    "ldfi_transaction_seconds",
    "How long a database transaction was open; `kind` is `read` or `write`.",
    _SHORT,
    ["kind"],
)
INTAKE_LAG: Final = _gauge(
    "ldfi_intake_lag_messages",
    "With Kafka: observations written that the leader has not taken in yet.",
)
RECORDS_DROPPED: Final = _counter(
    "ldfi_records_dropped_total",
    "Records that the database cannot hold as they are, by what they are of. The audit says why.",
    ["record"],
)
for _record in ("class", "notification", "certificate", "lesson"):
    RECORDS_DROPPED.labels(_record)  # so that each is there before the first
CLOCK_STEPS: Final = _counter(
    "ldfi_clock_steps_total", "How often the machine's clock was set while this process ran."
)
CLOCK_SKEW: Final = _gauge(
    "ldfi_clock_skew_seconds", "By how much the machine's clock is ahead of this process's time."
)
HTTP_REQUESTS: Final = _counter(
    "ldfi_http_requests_total",
    "Requests answered; `route` is the template of the path, `none` where nothing is at the path.",
    ["method", "route", "status"],
)
HTTP_SECONDS: Final = _histogram(
    "ldfi_http_request_seconds",
    "Seconds until an answer began. An edge that asks for rules is kept waiting on purpose.",
    (*_SHORT, 10.0, 30.0),
    ["route"],
)

_BEGAN = "ldfi_began"


def time_transactions(engine: Engine) -> None:
    """Have every transaction of this database counted in :data:`TRANSACTION_SECONDS`."""
    event.listen(engine, "begin", _began)
    event.listen(engine, "commit", _ended)
    event.listen(engine, "rollback", _ended)


def _began(connection: Connection) -> None:
    connection.info[_BEGAN] = time.perf_counter()


def _ended(connection: Connection) -> None:
    began: Any = connection.info.pop(_BEGAN, None)
    if began is not None:
        writing = connection.get_execution_options().get("writing")
        seconds = time.perf_counter() - began
        TRANSACTION_SECONDS.labels("write" if writing else "read").observe(seconds)
