"""Counts what was produced without the service: by its sender, and from what Kafka holds.

Two accounts that share nothing with the service. The sender puts down every body that was taken
(:mod:`soak.traffic`). And when all is over, the topics are read from their
beginning with the bare client, and the requests of which both halves are there are put together.
The classes on record must have counted the latter, each once; and the latter must hold the former,
but for what a killed Collector had in its memory.
"""

from __future__ import annotations

import json
import math
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TextIO

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ldfi.experiments.domain.traffic.catalogue import Catalogue
from ldfi.experiments.store import classes
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import ExperimentRow
from ldfi.experiments.streams.stream import Topics
from ldfi.experiments.streams.wire import read_cut, read_mark, read_told
from ldfi.fit.protocol import attributes
from soak.record import Record

Half = Literal["spans", "metrics"]


class Served(NamedTuple):
    """A request. ``experiment``: which one its spans carry; empty where none."""

    trace_id: str
    path: str
    experiment: str


_writing = threading.Lock()


def put_down(account: TextIO, half: Half, requests: Iterable[Served]) -> None:
    """Write down that this half of these requests was accepted by its receiver."""
    line = json.dumps([half, list(requests)])
    with _writing:
        account.write(line + "\n")
        account.flush()


def taken(account: Path) -> dict[str, Served]:
    """Return the requests of which both halves were accepted, by trace id."""
    halves: dict[str, dict[str, Served]] = {"spans": {}, "metrics": {}}
    for line in account.read_text().splitlines():
        half, requests = json.loads(line)
        halves[half].update((each[0], Served(*each)) for each in requests)
    return {key: each for key, each in halves["spans"].items() if key in halves["metrics"]}


@dataclass(slots=True)
class Logged:
    """A request as Kafka holds it: span id → parent of all its spans, and what its device says.

    ``observed``: when a worker first put both halves together, Unix seconds by Kafka's clock.
    """

    parents: dict[bytes, bytes] = field(default_factory=dict)
    path: str = ""
    experiment: str = ""
    arm: str = ""
    fired: bool = False
    device: str = ""
    success: bool | None = None
    observed: float = math.inf

    @property
    def whole(self) -> bool:
        """Return whether there are both halves, and every span's parent."""
        known = {b"", *self.parents}
        complete = bool(self.path) and all(each in known for each in self.parents.values())
        return complete and self.success is not None


def in_kafka(address: str, topics: Topics) -> dict[str, Logged]:
    """Return the whole requests that Kafka holds, by trace id."""
    from kafka import KafkaConsumer

    found: defaultdict[str, Logged] = defaultdict(Logged)
    consumer = KafkaConsumer(
        topics.spans,
        topics.metrics,
        topics.observations,
        bootstrap_servers=[address],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        group_id=None,
    )
    try:
        for message in _all_of(consumer):
            if message.topic == topics.spans:
                _take_spans(found, message.value)
            elif message.topic == topics.observations:
                if any(read(message.value) for read in (read_cut, read_mark, read_told)):
                    continue  # no observation
                logged = found[message.key.decode()]
                logged.observed = min(logged.observed, message.timestamp / 1000)
            else:
                said = json.loads(message.value)
                logged = found[said["trace_id"]]
                logged.device, logged.success = said["device"], said["success"]
    finally:
        consumer.close()
    return {trace_id: each for trace_id, each in found.items() if each.whole}


def _all_of(consumer: Any) -> Iterator[Any]:
    """Yield every message that was there when we began."""
    while not consumer.assignment():
        consumer.poll(timeout_ms=100, max_records=1)
    places = list(consumer.assignment())
    ends = consumer.end_offsets(places)
    consumer.seek_to_beginning(*places)
    while any(consumer.position(place) < ends[place] for place in places):
        for batch in consumer.poll(timeout_ms=500).values():
            yield from batch


def _take_spans(found: Mapping[str, Logged], value: bytes) -> None:
    for resource in ExportTraceServiceRequest.FromString(value).resource_spans:
        for span in (span for scope in resource.scope_spans for span in scope.spans):
            logged = found[span.trace_id.hex()]
            logged.parents[span.span_id] = span.parent_span_id
            said = {each.key: each.value.string_value for each in span.attributes}
            logged.fired |= attributes.FIRED in said
            if not span.parent_span_id:
                logged.path = said["url.full"].removeprefix("http://api")
                logged.experiment = said.get(attributes.EXPERIMENT, "")
                logged.arm = said.get(attributes.ARM, "")


def undisturbed(logged: Iterable[Logged]) -> Counter[str]:
    """Count the good requests of each path that no experiment had to do with."""
    return Counter(each.path for each in logged if not each.experiment and each.success)


def counted(database: str) -> Counter[str]:
    """Return how many requests the classes on record have counted, by path."""
    db = Database(database)
    try:
        with db.read() as session:
            catalogue = Catalogue.from_json(classes.load(session))
    finally:
        db.close()
    found: Counter[str] = Counter()
    for known in catalogue.classes.values():
        paths = [c.value for c in known.predicate.conditions if c.feature == "path"]
        path = str(paths[0]) if paths else f"class {known.name}"  # one that should not be there
        found[path] += known.traffic.good
    return found


def miscounted(wanted: Counter[str], got: Counter[str]) -> Iterator[str]:
    """Yield each path whose classes have not counted what Kafka holds, each request once."""
    for path in sorted(wanted.keys() | got.keys()):
        if wanted[path] != got[path]:
            yield f"{path}: Kafka holds {wanted[path]} good requests, {got[path]} are counted"


def lost(sent: Mapping[str, Served], logged: Mapping[str, Logged]) -> list[Served]:
    """Return what was accepted from the sender, and is not in Kafka as a whole."""
    return [each for trace_id, each in sent.items() if trace_id not in logged]


def ill_accounted(
    record: Record, logged: Iterable[Logged], heard_until: Callable[[ExperimentRow], float]
) -> Iterator[str]:
    """Yield each experiment that counts a device that Kafka does not know, or one twice, or that
    has not every hurt device on record.

    ``heard_until``: what was observed until then, Unix seconds, an experiment must have heard of.
    """
    of: defaultdict[str, list[Logged]] = defaultdict(list)
    for each in logged:
        of[each.experiment].append(each)
    for row in record.experiments.values():
        mine = of[row.id]
        for arm in ("control", "treatment"):
            said = row.comparison.get(arm, {}).get("devices", 0)
            devices = {each.device for each in mine if each.arm == arm}
            if said > len(devices):
                yield f"experiment {row.id} counts {said} devices of {arm}, Kafka {len(devices)}"
        bad = [each for each in mine if each.fired and not each.success]
        hurt = {each.device for each in bad}
        heard = {each.device for each in bad if each.observed <= heard_until(row)}
        known = row.members_hurt or 0
        if not len(heard) <= known <= len(hurt):
            yield (
                f"experiment {row.id} says that {known} were hurt; Kafka knows of {len(hurt)}, "
                f"{len(heard)} of them in time"
            )
