"""What the leader tells Prometheus: it is in memory, and this process's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, get_args

from prometheus_client.metrics_core import Metric as Family

from ldfi.experiments.domain.judging import experiment
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.telemetry.exposition import family
from ldfi.experiments.telemetry.instruments import Metric

SPANS = Metric("ldfi_spans_received_total", "counter", "Spans received.")
OUTCOMES = Metric("ldfi_outcomes_received_total", "counter", "Outcomes that devices reported.")
DROPPED = Metric(
    "ldfi_dropped_total",
    "counter",
    "What was received and could not be used; `reason` begins with what it was.",
    ("reason",),
)
TRACES = Metric(
    "ldfi_traces_total",
    "counter",
    "Traces by what became of them: `whole`; `cut` or `rootless`, which missed something when "
    "patience was over; of the whole ones `late`, of which a span came afterwards, and `unjoined`, "
    "on which no device reported.",
    ("fate",),
)
OPEN_TRACES = Metric("ldfi_traces_open", "gauge", "Traces that are being put together.")
OLDEST_TRACE = Metric(
    "ldfi_traces_oldest_seconds",
    "gauge",
    "Since when the oldest of them is open; 0 where none is.",
)
TICK_AGE = Metric("ldfi_tick_age_seconds", "gauge", "Since when the engine has made no step.")
CLASSES = Metric(
    "ldfi_classes", "gauge", "Request classes; `fit` says whether they may be explored.", ("fit",)
)
EDGES = Metric("ldfi_edges", "gauge", "Edges that asked for rules within the last lease.")
LATE_ASKS = Metric(
    "ldfi_edge_late_asks_total",
    "counter",
    "Devices that edges left in neither arm: no answer came in time when they asked.",
)
ARMED = Metric("ldfi_rules_armed", "gauge", "Experiments whose rules the edges follow now.")
LIVE = Metric(
    "ldfi_experiments_live",
    "gauge",
    "Experiments that are not over; in `armed`, `observing` and `settling` faults may be injected.",
    ("state",),
)
HALTED = Metric("ldfi_halted", "gauge", "1 while everything is halted.")
BREACHED = Metric("ldfi_guardrail_breached", "gauge", "1 while a guardrail does not hold.")
WINDOWS = Metric("ldfi_maintenance_windows", "gauge", "Maintenance windows that are open.")
IN_MEMORY: Final = (
    SPANS, OUTCOMES, DROPPED, TRACES, OPEN_TRACES, OLDEST_TRACE, TICK_AGE, CLASSES, EDGES,
    LATE_ASKS, ARMED, LIVE, HALTED, BREACHED, WINDOWS,
)  # fmt: skip
_OVER: Final = frozenset({"decided", "aborted"})


def of_engine(engine: Engine, now: float) -> Iterator[Family]:
    """Return the metrics that are in memory; called from the engine's own thread."""
    state, oldest = engine.scheduler.state, engine.oldest_trace
    fit = Counter("no" if known.unfit else "yes" for known in engine.catalogue.classes.values())
    live = Counter(
        each.state for campaign in state.campaigns.values() for each in campaign.running.values()
    )
    yield family(SPANS, {(): engine.spans})
    yield family(OUTCOMES, {(): engine.outcomes})
    yield family(DROPPED, {(reason,): count for reason, count in engine.drops().items()})
    yield family(TRACES, {(fate,): count for fate, count in engine.fates().items()})
    yield family(OPEN_TRACES, {(): engine.open_traces})
    yield family(OLDEST_TRACE, {(): 0.0 if oldest is None else max(0.0, now - oldest)})
    yield family(TICK_AGE, {(): max(0.0, now - engine.ticked_at)})
    yield family(CLASSES, {(each,): fit[each] for each in ("yes", "no")})
    yield family(EDGES, {(): engine.board.edges(now)})
    yield family(LATE_ASKS, {(): engine.board.fleet.late})
    yield family(ARMED, {(): len(engine.board.armed())})
    yield family(
        LIVE,
        {
            (state,): live[state]
            for state in get_args(experiment.ExperimentState)
            if state not in _OVER
        },
    )
    yield family(HALTED, {(): state.halted is not None})
    yield family(BREACHED, {(): state.breach is not None})
    yield family(WINDOWS, {(): len(state.windows)})
