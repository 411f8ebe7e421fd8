"""What an ingest worker tells Prometheus of its work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.metrics_core import Metric as Family

from ldfi.experiments.cluster.ingest import Ingest
from ldfi.experiments.telemetry.exposition import family
from ldfi.experiments.telemetry.instruments import Metric
from ldfi.lineage.assembly import FATES

READY = Metric(
    "ldfi_ingest_ready",
    "gauge",
    "1 where a worker is in touch with the brokers, has partitions and gets on with them.",
)
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
FATE = Metric(
    "ldfi_ingest_traces_total",
    "counter",
    "Traces that this worker has put together; as in `ldfi_traces_total`.",
    ("fate",),
)
LAG = Metric(
    "ldfi_ingest_lag_messages", "gauge", "Messages written and not yet read, in its partitions."
)
STALLED = Metric(
    "ldfi_ingest_stalled_seconds",
    "gauge",
    "Seconds for which messages have waited unread, or what was read could not be committed.",
)
UNFINISHED = Metric("ldfi_ingest_requests_open", "gauge", "Requests that are being put together.")
PARTITIONS = Metric("ldfi_ingest_partitions", "gauge", "Partitions that are this worker's.")
IN_WORKER: Final = (
    READY, READ, READ_SPANS, WRITTEN, BURIED, UNUSED, FATE, LAG, STALLED, UNFINISHED, PARTITIONS,
)  # fmt: skip


def of_worker(ingest: Ingest) -> Iterator[Family]:
    """Return the metrics of an ingest worker."""
    yield family(READY, {(): ingest.ready()})
    worker = ingest.worker
    if worker is None:
        return
    seen = worker.seen
    yield family(READ, {(): seen.messages})
    yield family(READ_SPANS, {(): seen.spans})
    yield family(WRITTEN, {(): seen.observations})
    yield family(BURIED, {(): seen.dead_letters})
    yield family(UNUSED, {(reason,): count for reason, count in seen.dropped.items()})
    unjoined = {"unjoined": seen.dropped["join_no_outcome"]}
    fates = {**dict.fromkeys(FATES, 0), **seen.fates, **unjoined}
    yield family(FATE, {(fate,): count for fate, count in fates.items()})
    yield family(LAG, {(): seen.lag})
    yield family(STALLED, {(): worker.stalled()})
    yield family(UNFINISHED, {(): seen.open})
    yield family(PARTITIONS, {(): seen.partitions})
