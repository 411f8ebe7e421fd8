"""What a process of the service is made with."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace

from ldfi.analysis.repairs.owners import Owners
from ldfi.analysis.repairs.request_names import Called
from ldfi.checker.head import SigningKey
from ldfi.experiments.cluster.role import ProcessRole
from ldfi.experiments.cluster.tokens import Tokens
from ldfi.experiments.domain.settings import Limits
from ldfi.experiments.domain.traffic.waiting_times import Waiting
from ldfi.experiments.notify.target import Target
from ldfi.experiments.scheduler.engine import OutcomeSource
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.namespaces import Namespace
from ldfi.experiments.streams.stream import Stream, Topics
from ldfi.experiments.telemetry.prometheus import Prometheus


@dataclass(frozen=True, slots=True)
class Service:
    """What one process of the service is made with.

    ``lease``: seconds an edge may act without news. ``quiet``, ``patience``: see
    :class:`ldfi.experiments.domain.traffic.waiting_times.Waiting`. ``member_key`` hashes members
    and devices at the door; made anew by default, and then nobody is recognised after a restart.
    ``trace_url``: where a trace can be looked at, with ``{trace_id}`` in it; empty: nowhere.
    ``owners``: who owns which service, ``called``: how people call requests, each by a file.
    ``advertise_url``: where the other processes reach this one while it leads. ``stream``: where
    spans and device metrics go and observations come from; None: they stay in the process.
    ``keys``: what the head of the chain of runs is signed with. ``halt_at``: host and port of the
    door for halting; None: there is none. ``grpc_at``: host and port of OTLP over gRPC, where no
    port means the usual one if it can be had; None: spans come over HTTP alone.
    """

    tokens: Tokens
    database: str
    lease: float = 10.0
    quiet: float = 0.4
    patience: float | None = None
    limits: Limits = field(default_factory=Limits)
    member_key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    outcomes: OutcomeSource = "devices"
    prometheus: Prometheus | None = None
    guardrails: tuple[str, ...] = ()
    targets: tuple[Target, ...] = ()
    public_url: str = ""
    trace_url: str = ""
    owners: Owners = field(default_factory=Owners)
    called: Called = field(default_factory=Called)
    role: ProcessRole = "all"
    advertise_url: str = ""
    stream: Stream | None = None
    keys: tuple[SigningKey, ...] = ()
    topics: Topics = field(default_factory=Topics)
    partitions: int = 12
    halt_at: tuple[str, int] | None = None
    grpc_at: tuple[str, int | None] | None = None

    def of_namespace(self, namespace: Namespace, store: Database) -> Service:
        """Return the service as it is for another namespace than the default one: with limits,
        tokens and topics of its own, and without what is only the default one's."""
        return replace(
            self,
            tokens=self.tokens.within(store),
            limits=namespace.limits(self.limits),
            topics=self.topics.of_namespace(namespace.name),
            prometheus=None,
            targets=(),
            halt_at=None,
            grpc_at=None,
        )

    @property
    def waiting(self) -> Waiting:
        """Return how long is waited for what belongs to one request. Raises ValueError."""
        return Waiting.of(self.quiet, self.patience)
