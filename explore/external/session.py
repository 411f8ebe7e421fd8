"""One session of exploring a system whose services are elsewhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from ldfi.experiments.domain.traffic.waiting import EXPORT, Waiting, quiet_for
from ldfi.explore.external.collector import Collector
from ldfi.explore.external.environment import variables
from ldfi.explore.external.receiver import Receiver, is_loopback, split
from ldfi.explore.external.requests import SentRequest, lineage_of, unanswered
from ldfi.explore.external.run_result import TO_SET, RunResult
from ldfi.explore.external.stamp import SharedKeys, Stamp
from ldfi.fit.protocol.faults import Fault
from ldfi.lineage.killed import deaths
from ldfi.lineage.lineage import Lineage, learn, unusable
from ldfi.lineage.sightings import Sightings, arrival_of, loose_of
from ldfi.lineage.span import Span, Trace

PATIENCE: Final = 10
"""So many times as for a trace that misses nothing is waited for what one misses, where services
were told to export at once."""

RUNS: Final = 1_000
"""Runs that are held against what came beside them."""
_RUN: Final = "the test"

_HOLES: Final = {
    "trace_unanswered": "a service that was called has not told of it",
    "trace_incomplete": "spans refer to one that has not come",
    "trace_short_of_calls": "a service has announced calls that have not come",
    "trace_without_root": "nothing of the test itself is there",
}


class Elsewhere:
    """Receives spans at ``address``, and signs what the test sends.

    ``interval``: how often services export, in seconds; all waiting follows from it. ``shared``:
    other processes explore beside this one (pytest-xdist). Raises Invalid.
    """

    def __init__(self, address: str, interval: float, *, shared: bool = False) -> None:
        self.secrets = SharedKeys.of_environment()
        quiet = quiet_for(interval)
        self.collector = Collector(
            Waiting.of(quiet, PATIENCE * quiet if interval < EXPORT else None)
        )
        self.receiver = Receiver(address, self.secrets.token, self.collector.take)
        self._runs: deque[Lineage] = deque(maxlen=RUNS)
        self._keys = self.secrets.keys
        self._shared = shared

    @property
    def endpoint(self) -> str:
        """Return where services on this machine export to."""
        host, port = split(self.receiver.address)
        return f"http://{host if is_loopback(host) else '127.0.0.1'}:{port}"

    def variables(self) -> dict[str, str]:
        """Return the environment variables that a service on this machine needs."""
        return variables(self.secrets, self.endpoint)

    def stamp(self, faults: Sequence[Fault], delay: float) -> Stamp:
        """Return the stamp for the requests of one run. ``delay``: seconds that a call hangs."""
        return Stamp(self._keys, faults, delay)

    def begin(self, trace_id: str) -> None:
        """Begin a run."""
        self.collector.begin(trace_id)

    def shown(self, trace_id: str, own: Sequence[Span], sent: Sequence[SentRequest]) -> RunResult:
        """Wait until the trace of a run is whole, and return its result. ``own``: spans of the
        test itself, ``sent``: its requests to services elsewhere."""
        trace = self.collector.whole(trace_id, own)
        lineage = lineage_of(trace, {each.span_id for each in sent})
        if (whole := learn(trace)) is not None:
            self._runs.append(whole)
        died = tuple(deaths(trace.spans))
        if died:  # whatever else the trace lacks: another try would kill the next
            return RunResult(lineage, died=died)
        if sent and len(unanswered(trace, sent)) == len(sent):
            answered = next((each for each in sent if each.status), None)
            if answered is None:
                return RunResult(
                    lineage, f"nobody answered {sent[0]}: was it restarting?", passing=True
                )
            return RunResult(lineage, self._silence(answered))
        hole = unusable(trace, lineage)
        if hole:
            return RunResult(
                lineage, f"the trace is not whole: {_HOLES.get(hole, hole)}", passing=True
            )
        return RunResult(lineage)

    def doubt(self) -> str:
        """Return why a conclusion may be wrong; empty if there is no reason."""
        late = self.collector.late
        if not late:
            return self._lost()
        return (
            f"{late} spans came when their run had been judged already: services export less often"
            f" than is waited for ({self.collector.waiting.quiet:g} s). {TO_SET}"
            " (OTEL_BSP_SCHEDULE_DELAY), or set that variable here to what is theirs"
        )

    def _lost(self) -> str:
        """Return which calls run in traces of their own while a run goes on, and never
        otherwise."""
        self.collector.feed()
        sightings = Sightings(lambda _features, _service: _RUN)
        for run in self._runs:
            sightings.take(run, reported=True)
        for trace_id, spans in self.collector.strays.items():
            stray = learn(Trace.of(trace_id, spans))
            if stray is not None and not stray.is_report:
                for event in loose_of(stray) or arrival_of(stray):
                    sightings.take_event(event)
        figure = sightings.figures().of(_RUN)
        return f"{figure.line}. {'; '.join(figure.advice())}" if figure.gaps else ""

    def close(self) -> None:
        """Stop receiving."""
        self.receiver.close()

    def _silence(self, sent: SentRequest) -> str:
        """Return why no spans came from the services, and what to set."""
        refused = self.receiver.counts["refused"]
        strangers = self.collector.strangers
        if refused:
            return (
                f"{refused} exports of spans were refused, for they did not show the token."
                f" {TO_SET} (OTEL_EXPORTER_OTLP_HEADERS has it)"
            )
        if self.receiver.counts["grpc"]:
            return (
                f"services export over gRPC to {self.receiver.address}, and grpcio is not installed"
                f" here: pip install grpcio, or have them speak HTTP. {TO_SET}"
                " (OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf, and an exporter that obeys it)"
            )
        if self.receiver.counts["unreadable"]:
            return (
                f"what came in at {self.receiver.address} were no traces in OTLP. {TO_SET}"
                " (OTEL_EXPORTER_OTLP_PROTOCOL is http/protobuf)"
            )
        if strangers:
            named = ", ".join(sorted(strangers))
            return (
                f"no spans came of {sent}, only of traces that {named} began: the request's"
                " traceparent is not continued. Instrument the server with OpenTelemetry, and give"
                " it OTEL_PROPAGATORS=tracecontext,baggage"
            )
        beside = (
            " In a worker of pytest-xdist, services that run already export to another worker: use"
            " -n 0, or start them with ldfi_services on ports of the worker's own."
        )
        return (
            f"no spans came from what answered {sent}. {TO_SET}: it exports to {self.endpoint}"
            " (OTEL_EXPORTER_OTLP_ENDPOINT) and continues the request's trace"
            f" (OTEL_PROPAGATORS=tracecontext,baggage).{beside if self._shared else ''}"
        )
