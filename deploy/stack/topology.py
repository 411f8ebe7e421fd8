"""Kafka, PostgreSQL, the Collector, and the service in its roles, each a process of its own.

    devices ──▶ demo ──spans──▶ Collector ──▶ Kafka ──▶ ingest ×2 ──▶ Kafka ──▶ scheduler (leads)
       └──────device metrics──▶ api ─────────▶ Kafka                                 │
                                 └──────── what only the leader knows ──────────────▶┤
                                                              scheduler (waits)  PostgreSQL

Each can be killed and started again: it comes back on the same port.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from deploy.stack import collector, kafka, postgresql
from deploy.stack.missing import Missing
from deploy.stack.roles import ROLES, Roles
from ldfi.cli.processes import Processes
from ldfi.experiments.streams.stream import Topics

Say = Callable[[str], None]

COLLECTOR: Final = {"SAMPLED_PERCENT": "100", "DECISION_WAIT": "1s"}
"""Every trace is kept, and judged a second after its first span: one machine is fast."""

PARTITIONS: Final = 8


@dataclass
class Stack:
    """What runs. ``database``: the URL of the record. ``roles``: the processes of the service."""

    broker: kafka.Broker
    postgresql: postgresql.Server
    database: str
    collector: collector.Collector
    processes: Processes
    roles: Roles
    topics: Topics

    @property
    def url(self) -> str:
        """Of the API."""
        return self.roles.url("api")


def missing() -> list[str]:
    """List what is not there, each with how it is had; Kafka is fetched where it can be."""
    found = []
    for installed in (kafka.installed, postgresql.installed, collector.installed):
        try:
            installed()
        except Missing as error:
            found.append(str(error))
    if find_spec("kafka") is None:
        found.append("no Kafka client for Python: pip install 'ldfi[demo,postgresql,kafka]'")
    return found


@contextmanager
def running(
    folder: Path,
    options: Mapping[str, str],
    say: Say = lambda _line: None,
    prefix: str = "ldfi",
    disk: Path | None = None,
) -> Iterator[Stack]:
    """Run all of it, ready, for as long as the block lasts; logs go to ``folder``.

    ``options``: variables of the service; where things are is added to them. ``disk``: where
    PostgreSQL writes. Raises Missing.
    """
    with ExitStack() as stack:
        began = time.monotonic()
        broker = stack.enter_context(kafka.running())
        say(f"Kafka {kafka.VERSION} at {broker.address}, {_since(began)}")
        server = stack.enter_context(postgresql.running(killable=True, within=disk))
        database = server.url(server.create())
        say(f"PostgreSQL at {server.folder}, {_since(began)}")
        topics = Topics(prefix)
        processes = stack.enter_context(Processes(folder))
        roles = Roles(
            processes,
            {
                "LDFI_DATABASE_URL": database,
                "LDFI_KAFKA": broker.address,
                "LDFI_KAFKA_PREFIX": prefix,
                "LDFI_KAFKA_PARTITIONS": f"{PARTITIONS}",
                **options,
            },
        )
        for name in ROLES:
            roles.start(name)
        for name in ROLES:
            roles.ready(name)
            say(f"{name} at {roles.url(name)}, {_since(began)}")
        where = {"KAFKA_BROKERS": broker.address, "KAFKA_TOPIC": topics.spans}
        log = folder / "collector.log"
        spans = stack.enter_context(
            collector.running(log, collector.ONLY_KAFKA, **COLLECTOR, **where)
        )
        say(f"OpenTelemetry Collector at {spans.url}, {_since(began)}")
        yield Stack(broker, server, database, spans, processes, roles, topics)


def _since(began: float) -> str:
    return f"after {time.monotonic() - began:.1f} s"
