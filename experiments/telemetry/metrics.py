"""What the service tells Prometheus of itself, looked up when it is asked.

What is in memory (the engine, the scheduler, the rules board) is this process's own. What is in the
database is the same whichever process is asked: take ``max``, not ``sum``, over several.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from itertools import product
from typing import Final, get_args

from prometheus_client import ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from ldfi.experiments.control.engine import Engine
from ldfi.experiments.domain.campaign import campaign, lifecycle
from ldfi.experiments.domain.judging import experiment
from ldfi.experiments.domain.judging.verdict import Verdict
from ldfi.experiments.domain.settings import Limits
from ldfi.experiments.process.ingest import Ingest
from ldfi.experiments.store import Database
from ldfi.experiments.store.arming import DAY, HOUR, charged, within
from ldfi.experiments.store.schema import CampaignRow, ExperimentRow, FindingRow, NotificationRow
from ldfi.experiments.telemetry import instruments
from ldfi.experiments.telemetry.instruments import Metric

Values = Mapping[tuple[str, ...], float]

NO_VERDICT: Final = "none"
FINDING_STATES: Final = get_args(lifecycle.State)

BUILD = Metric("ldfi_build_info", "gauge", "Always 1.", ("version", "python"))
LEADS = Metric("ldfi_leads", "gauge", "1 in the process that leads; it alone has an engine.")
SPANS = Metric("ldfi_spans_received_total", "counter", "Spans received.")
OUTCOMES = Metric("ldfi_outcomes_received_total", "counter", "Outcomes that devices reported.")
DROPPED = Metric(
    "ldfi_dropped_total",
    "counter",
    "What was received and could not be used; `reason` begins with what it was.",
    ("reason",),
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
    BUILD, LEADS, SPANS, OUTCOMES, DROPPED, OPEN_TRACES, OLDEST_TRACE, TICK_AGE, CLASSES, EDGES,
    ARMED, LIVE, HALTED, BREACHED, WINDOWS,
)  # fmt: skip

READY = Metric("ldfi_ingest_ready", "gauge", "1 where a worker is in touch with the brokers.")
READ = Metric("ldfi_ingest_messages_total", "counter", "Messages that this worker has read.")
READ_SPANS = Metric("ldfi_ingest_spans_total", "counter", "Spans in them.")
WRITTEN = Metric(
    "ldfi_ingest_observations_total", "counter", "Requests of which both halves were written on."
)
BURIED = Metric("ldfi_ingest_dead_letters_total", "counter", "Messages that could not be read.")
UNUSED = Metric(
    "ldfi_ingest_dropped_total",
    "counter",
    "What this worker has read and could not use; as in `ldfi_dropped_total`.",
    ("reason",),
)
LAG = Metric(
    "ldfi_ingest_lag_messages", "gauge", "Messages written and not yet read, in its partitions."
)
UNFINISHED = Metric("ldfi_ingest_requests_open", "gauge", "Requests that are being put together.")
PARTITIONS = Metric("ldfi_ingest_partitions", "gauge", "Partitions that are this worker's.")
IN_WORKER: Final = (
    READY, READ, READ_SPANS, WRITTEN, BURIED, UNUSED, LAG, UNFINISHED, PARTITIONS,
)  # fmt: skip

UP = Metric("ldfi_database_up", "gauge", "1 where the database answered; else what follows misses.")
CAMPAIGNS = Metric("ldfi_campaigns", "gauge", "Campaigns there ever were, by state.", ("state",))
EXPERIMENTS = Metric(
    "ldfi_experiments_ended_total",
    "counter",
    f"Experiments that are over. `verdict` is `{NO_VERDICT}` where one was called off.",
    ("purpose", "verdict"),
)
HURT = Metric("ldfi_members_hurt_total", "counter", "Treated devices that reported a failure.")
CHARGED = Metric(
    "ldfi_members_charged",
    "gauge",
    "Devices charged to the budget of the last `hour` and `day`.",
    ("window",),
)
LIMIT = Metric("ldfi_members_limit", "gauge", "How many these budgets allow.", ("window",))
FINDINGS = Metric("ldfi_findings", "gauge", "Findings by state.", ("state",))
WAITING = Metric(
    "ldfi_notifications_waiting",
    "gauge",
    "Notifications not delivered yet. Without a target nothing is, ever.",
)
GIVEN_UP = Metric(
    "ldfi_notifications_given_up_total", "counter", "Notifications that a target did not take."
)
IN_DATABASE: Final = (
    UP, CAMPAIGNS, EXPERIMENTS, HURT, CHARGED, LIMIT, FINDINGS, WAITING, GIVEN_UP,
)  # fmt: skip


class Families(Collector):
    """Metric families that have been looked up already."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Family]:
        """What was looked up."""
        return self._families


def text(families: Iterable[Family]) -> bytes:
    """These families, the instruments and the process itself, in Prometheus's text format."""
    process = ProcessCollector(registry=None).collect()
    return generate_latest(Families([*families, *instruments.REGISTRY.collect(), *process]))


def of_process(*, leads: bool) -> Iterator[Family]:
    """What every process says of itself."""
    yield _family(BUILD, {(version("ldfi"), platform.python_version()): 1})
    yield _family(LEADS, {(): leads})


def of_engine(engine: Engine, now: float) -> Iterator[Family]:
    """What is in memory. To be called from the engine's own thread."""
    scheduler, oldest = engine.scheduler, engine.oldest_trace
    fit = Counter("no" if known.unfit else "yes" for known in engine.catalogue.classes.values())
    live = Counter(
        each.state
        for campaign in scheduler.campaigns.values()
        for each in campaign.running.values()
    )
    yield _family(SPANS, {(): engine.spans})
    yield _family(OUTCOMES, {(): engine.outcomes})
    yield _family(DROPPED, {(reason,): count for reason, count in engine.drops().items()})
    yield _family(OPEN_TRACES, {(): engine.open_traces})
    yield _family(OLDEST_TRACE, {(): 0.0 if oldest is None else max(0.0, now - oldest)})
    yield _family(TICK_AGE, {(): max(0.0, now - engine.ticked_at)})
    yield _family(CLASSES, {(each,): fit[each] for each in ("yes", "no")})
    yield _family(EDGES, {(): len(engine.board.edges(now))})
    yield _family(ARMED, {(): len(engine.board.armed())})
    yield _family(
        LIVE, {(state,): live[state] for state in get_args(experiment.State) if state not in _OVER}
    )
    yield _family(HALTED, {(): scheduler.halted is not None})
    yield _family(BREACHED, {(): scheduler.breach is not None})
    yield _family(WINDOWS, {(): len(scheduler.windows)})


def of_worker(ingest: Ingest) -> Iterator[Family]:
    """What an ingest worker has done and where it stands."""
    yield _family(READY, {(): ingest.ready()})
    if ingest.worker is None:
        return
    seen = ingest.worker.seen
    yield _family(READ, {(): seen.messages})
    yield _family(READ_SPANS, {(): seen.spans})
    yield _family(WRITTEN, {(): seen.observations})
    yield _family(BURIED, {(): seen.dead_letters})
    yield _family(UNUSED, {(reason,): count for reason, count in seen.dropped.items()})
    yield _family(LAG, {(): seen.lag})
    yield _family(UNFINISHED, {(): seen.open})
    yield _family(PARTITIONS, {(): seen.partitions})


def of_database(database: Database, limits: Limits, now: float) -> list[Family]:
    """What is on record; where the database does not answer, just that."""
    try:
        with database.read() as session:
            return [_family(UP, {(): 1}), *_on_record(session, limits, now)]
    except SQLAlchemyError:
        return [_family(UP, {(): 0})]


def table() -> str:
    """All metrics as a Markdown table, which docs/metrics.md holds."""
    lines = ["| metric | type | labels | meaning |", "|---|---|---|---|"]
    for metric in (*IN_MEMORY, *instruments.METRICS, *IN_WORKER, *IN_DATABASE):
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        lines.append(f"| `{metric.name}` | {metric.type} | {labels} | {metric.meaning} |")
    return "\n".join(lines)


_OVER: Final = frozenset({"decided", "aborted"})


def _on_record(session: Session, limits: Limits, now: float) -> Iterator[Family]:
    campaigns = _counted(session, CampaignRow.state)
    states = get_args(campaign.State)
    yield _family(CAMPAIGNS, {(state,): campaigns.get((state,), 0) for state in states})
    yield _family(EXPERIMENTS, _ended(session))
    hurt = session.scalar(select(func.coalesce(func.sum(ExperimentRow.members_hurt), 0)))
    yield _family(HURT, {(): int(hurt or 0)})
    hour, day = (charged(session, within(now - each)) for each in (HOUR, DAY))
    yield _family(CHARGED, {("hour",): hour, ("day",): day})
    yield _family(LIMIT, {("hour",): limits.members_per_hour, ("day",): limits.members_per_day})
    findings = _counted(session, FindingRow.state)
    yield _family(FINDINGS, {(state,): findings.get((state,), 0) for state in FINDING_STATES})
    query = select(func.count()).select_from(NotificationRow)
    waiting = session.scalar(query.where(NotificationRow.delivered_at.is_(None)))
    yield _family(WAITING, {(): waiting or 0})
    given_up = session.scalar(query.where(NotificationRow.error.is_not(None)))
    yield _family(GIVEN_UP, {(): given_up or 0})


def _ended(session: Session) -> Values:
    query = (
        select(ExperimentRow.purpose, ExperimentRow.verdict, func.count())
        .where(ExperimentRow.ended_at.is_not(None))
        .group_by(ExperimentRow.purpose, ExperimentRow.verdict)
    )
    found = {(purpose, verdict or NO_VERDICT): n for purpose, verdict, n in session.execute(query)}
    every = product(get_args(experiment.Purpose), (*get_args(Verdict), NO_VERDICT))
    return {each: found.get(each, 0) for each in every}


def _counted(session: Session, column: object) -> Values:
    query = select(column, func.count()).group_by(column)  # type: ignore[call-overload]
    return {(value,): count for value, count in session.execute(query)}


def _family(metric: Metric, values: Values) -> Family:
    kind = CounterMetricFamily if metric.type == "counter" else GaugeMetricFamily
    family = kind(metric.name, metric.meaning, labels=metric.labels)
    for labels, value in values.items():
        family.add_metric(labels, float(value))
    return family
