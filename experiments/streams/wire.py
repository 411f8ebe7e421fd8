"""How observations and device metrics look on the wire.

An observation is two lines of JSON. The first is about the request: ids, times, outcome, and where
its halves stood in the stream. The second is about the *shape* of its lineage: the spans of a
request that went the same way, with their times only where somebody may ask for them, which is
under an experiment. So the second line recurs, and is worked out once at either end.

Workers and leaders of different versions run side by side during an upgrade. So a message says in
a header which :data:`VERSION` it is written in; one without the header is of version 1. Within a
version fields are only ever added behind the last one, and readers pass over those they do not
know. What readers of a version could not understand needs a new one: it is written only when all
readers know it, and whoever does not know it says so in the dead letters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ldfi.errors import UnreadableMessage
from ldfi.experiments.domain.traffic.cut_traces import CutRequest
from ldfi.experiments.domain.traffic.observation import Observation, Outcome
from ldfi.experiments.streams.stream import Header
from ldfi.fit.protocol.features import Features
from ldfi.fit.protocol.mark import Mark
from ldfi.lineage.killed_process import Death
from ldfi.lineage.lineage import Lineage, Way, learn_in_full, way_of
from ldfi.lineage.loose_calls import Event
from ldfi.lineage.operation import Operation
from ldfi.lineage.span import Links, Span, Trace
from ldfi.lineage.text import clean

REMEMBERED: Final = 20_000
"""Shapes that are recognised by their bytes."""

_UNREADABLE: Final = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""What reading bytes that others wrote may raise."""

_SAID: Final = 6
"""What an outcome says beside the trace id."""

VERSION: Final = 1
HEADERS: Final = (("version", str(VERSION).encode()),)
"""What messages of observations are sent with."""

_OPERATION: Final = (
    "service",
    "name",
    "kind",
    "failed",
    "refused",
    "point",
    "peer",
    "route",
    "features",
    "fired",
    "would_fire",
    "experiment",
    "arm",
    "detached",
    "fields",
)
"""What is written of an operation, in this order; new ones come last."""


class Halves(NamedTuple):
    """Where the halves of a request stand in their topics, and what will be read again.

    ``spans``, ``metrics``: the last offset of a message of it. ``spans_from``, ``metrics_from``:
    the offsets that were committed when this was written; nothing before them is ever read again.
    """

    spans: int
    metrics: int
    spans_from: int
    metrics_from: int


class Sighting(NamedTuple):
    """An observation as it came, and where its halves stood."""

    observation: Observation
    halves: Halves


class ObservationWriter:
    """Writes observations."""

    def __init__(self) -> None:
        self._shapes: dict[int, tuple[object, bytes]] = {}
        self._operations: dict[Operation, str] = {}

    def write(self, observation: Observation, halves: Halves) -> bytes:
        """Write one observation as bytes."""
        run, seen = observation.lineage, observation.outcome
        outcome = [seen.device, seen.member, seen.success, seen.error_code, seen.duration]
        if seen.degraded:
            outcome.append(True)
        head: list[object] = [run.trace_id, run.start, run.duration, run.spans, outcome, halves]
        if run.trace.missing:
            head.append(run.trace.missing)
        return json.dumps(head, separators=(",", ":")).encode() + b"\n" + self._shape(run)

    def _shape(self, run: Lineage) -> bytes:
        if run.experiment:
            return self._spans(run.trace)
        # `learn` gives the same object to all traces of one shape, and we keep it: its id is safe
        known = self._shapes.get(id(run.callees))
        if known is None:
            if len(self._shapes) >= REMEMBERED:
                self._shapes.clear()
            known = self._shapes[id(run.callees)] = (run.callees, self._spans(run.trace))
        return known[1]

    def _spans(self, trace: Trace) -> bytes:
        used: dict[Operation, int] = {}
        rows = []
        for span in trace.spans:
            number = used.setdefault(span.operation, len(used))
            row: list[object] = [span.span_id, span.parent_id, span.start, span.end, number]
            rows.append([*row, [span_id for _, span_id in span.links]] if span.links else row)
        operations = ",".join(map(self._operation, used))
        return f"[{json.dumps(rows, separators=(',', ':'))},[{operations}]]".encode()

    def _operation(self, what: Operation) -> str:
        known = self._operations.get(what)
        if known is None:
            if len(self._operations) >= REMEMBERED:
                self._operations.clear()
            values = [getattr(what, name) for name in _OPERATION]
            known = self._operations[what] = json.dumps(values, separators=(",", ":"))
        return known


class ObservationReader:
    """Reads what :class:`ObservationWriter` wrote."""

    def __init__(self) -> None:
        self._shapes: dict[bytes, tuple[Way, tuple[Span, ...]]] = {}
        self._operations: dict[str, Operation] = {}

    def read(self, value: bytes, headers: Iterable[Header] = ()) -> Sighting:
        """Read one observation. Raises UnreadableMessage."""
        try:
            _check_version(headers)
            head, _, shape = value.partition(b"\n")
            trace_id, start, duration, spans, outcome, halves, *more = json.loads(head)
            way, taken = self._way(shape)
            trace = Trace(trace_id, taken, str(more[0]) if more else "")
            lineage = way(trace_id, start, duration, spans, trace)
            seen = Outcome(trace_id, *outcome[:_SAID])
            return Sighting(Observation(lineage, seen), Halves(*halves[: len(Halves._fields)]))
        except _UNREADABLE as error:
            raise UnreadableMessage(f"no observation: {error}") from error

    def _way(self, shape: bytes) -> tuple[Way, tuple[Span, ...]]:
        known = self._shapes.get(shape)
        if known is None:
            spans = tuple(self._spans(shape))
            learned = learn_in_full(Trace("", spans))
            if learned is None:
                raise ValueError("its spans do not hang together in one tree")
            known = way_of(learned), spans
            if not learned.experiment:
                if len(self._shapes) >= REMEMBERED:
                    self._shapes.clear()
                self._shapes[shape] = known
        return known

    def _spans(self, shape: bytes) -> list[Span]:
        rows, written, *_ = json.loads(shape)
        operations = [self._operation(values) for values in written]
        return [
            Span("", span_id, parent_id, start, end, operations[number], _links(*links))
            for span_id, parent_id, start, end, number, *links in rows
        ]

    def _operation(self, values: list[Any]) -> Operation:
        """Return the operation with these values; equal operations must be the same object."""
        key = json.dumps(values)
        known = self._operations.get(key)
        if known is None:
            if len(self._operations) >= REMEMBERED:
                self._operations.clear()
            known_here = values[: len(_OPERATION)]
            given = dict(zip(_OPERATION, known_here, strict=True))
            given |= {name: tuple(given[name]) for name in ("fired", "would_fire")}
            given["fields"] = tuple((name, value) for name, value in given["fields"])
            known = self._operations[key] = Operation(**given)
        return known


def write_cut(cut: CutRequest) -> bytes:
    """Write that the trace of a request under experiment had a hole. It stands among the
    observations, of which it is none; its key says which trace."""
    said = {"cut": [cut.experiment, cut.arm], **_died(cut.died)}
    return json.dumps(said, separators=(",", ":")).encode()


def read_cut(value: bytes, trace_id: str = "") -> CutRequest | None:
    """Read what :func:`write_cut` wrote; None for anything else."""
    if not value.startswith(b'{"cut":'):
        return None
    try:
        said = json.loads(value)
        experiment, arm = said["cut"]
        return CutRequest(str(experiment), str(arm), trace_id, _deaths(said))
    except _UNREADABLE:
        return None


def write_mark(mark: Mark, at: int) -> bytes:
    """Write that a fault is about to fire, or would; among the observations as well. ``at``:
    nanoseconds of the process that says so."""
    return json.dumps({"mark": [str(mark), at]}, separators=(",", ":")).encode()


def read_mark(value: bytes) -> tuple[Mark, int] | None:
    """Read what :func:`write_mark` wrote; None for anything else."""
    if not value.startswith(b'{"mark":'):
        return None
    try:
        text, at = json.loads(value)["mark"]
        mark = Mark.parse(str(text))
        return None if mark is None else (mark, int(at))
    except _UNREADABLE:
        return None


def write_told(experiment: str, died: Iterable[Death]) -> bytes:
    """Write that the trace is whole of which a mark had come, and which processes died under it."""
    return json.dumps({"told": experiment, **_died(died)}, separators=(",", ":")).encode()


def read_told(value: bytes) -> tuple[str, tuple[Death, ...]] | None:
    """Read what :func:`write_told` wrote; None for anything else."""
    if not value.startswith(b'{"told":'):
        return None
    try:
        said = json.loads(value)
        return str(said["told"]), _deaths(said)
    except _UNREADABLE:
        return None


def _died(died: Iterable[Death]) -> dict[str, Any]:
    rows = [[each.service, str(each.mark), each.at] for each in died]
    return {"died": rows} if rows else {}


def _deaths(said: Mapping[str, Any]) -> tuple[Death, ...]:
    rows = ((str(name), Mark.parse(str(text)), int(at)) for name, text, at in said.get("died", ()))
    return tuple(Death(name, mark, at) for name, mark, at in rows if mark is not None)


def write_event(event: Event) -> bytes:
    """Write a call whose request is not known. It stands among the observations as well."""
    return json.dumps({"event": event}, separators=(",", ":")).encode()


def read_event(value: bytes) -> Event | None:
    """Read what :func:`write_event` wrote; None for anything else."""
    if not value.startswith(b'{"event":'):
        return None
    try:
        why, service, at, point, start, end = json.loads(value)["event"]
        if why not in ("loose", "arrival"):
            return None
        return Event(why, str(service), str(at), str(point), int(start), int(end))
    except _UNREADABLE:
        return None


def write_hole(service: str, features: Features) -> bytes:
    """Write that of a request less came than its trace announced, among the observations too."""
    return json.dumps({"hole": [service, dict(features)]}, separators=(",", ":")).encode()


def read_hole(value: bytes) -> tuple[str, Features] | None:
    """Read what :func:`write_hole` wrote; None for anything else."""
    if not value.startswith(b'{"hole":'):
        return None
    try:
        service, features = json.loads(value)["hole"]
        return str(service), {str(name): str(each) for name, each in features.items()}
    except _UNREADABLE:
        return None


def write_report(report: str) -> bytes:
    """Write what an injector says that it can reach. It stands among the observations as well."""
    return json.dumps({"reach": report}, separators=(",", ":")).encode()


def read_report(value: bytes) -> str | None:
    """Read what :func:`write_report` wrote; None for anything else."""
    if not value.startswith(b'{"reach":'):
        return None
    try:
        return str(json.loads(value)["reach"])
    except _UNREADABLE:
        return None


def _check_version(headers: Iterable[Header]) -> None:
    for name, said in headers:
        if name == "version" and not 1 <= int(said) <= VERSION:
            raise ValueError(f"written in version {int(said)}, and this reader knows {VERSION}")


def _links(within: Sequence[str] = (), *_: object) -> Links:
    """Read links: within a trace that is joined already, the span says all."""
    return tuple(("", span_id) for span_id in within)


def write_outcome(outcome: Outcome) -> bytes:
    """Write a device metric as bytes: hashed at the door, so no one's name is in it."""
    values = {name: getattr(outcome, name) for name in Outcome.__slots__}
    return json.dumps(values, separators=(",", ":")).encode()


def read_outcome(value: bytes) -> Outcome:
    """Read what :func:`write_outcome` wrote. Raises UnreadableMessage."""
    try:
        given = json.loads(value)
        trace_id, device, member = (str(given[name]) for name in ("trace_id", "device", "member"))
        trace_id.encode()  # half a character would be of no trace
        code, duration = given.get("error_code"), float(given.get("duration", 0.0))
        device, member, code = clean(device), clean(member), None if code is None else clean(code)
        degraded = bool(given.get("degraded", False))
        return Outcome(trace_id, device, member, bool(given["success"]), code, duration, degraded)
    except _UNREADABLE as error:
        raise UnreadableMessage(f"no device metric: {error!r}") from error
