"""The whole stack, besieged: PostgreSQL on a small disk, Kafka, the service in its roles.

Edges and people come to the API's process, which does not lead: halts go in by its door. Clocks are
those of all the processes of the service. The disk that is full is PostgreSQL's.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy.engine import make_url

from deploy.stack import postgresql
from deploy.stack.topology import Stack, running
from ldfi.cli.processes import Processes
from soak import faketime
from soak.disk import Disk, mounted
from soak.sites import traffic
from soak.stack_kills import CAMPAIGN
from soak.victims import OPTIONS, SCHEDULERS

MEGABYTES = 160
"""PostgreSQL takes about fifty when it begins, and keeps logs of sixteen."""


@dataclass
class StackSite:
    """``stack``: what runs; ``log`` is of those that lead."""

    stack: Stack
    folder: Path
    offset: Path
    disk: Disk

    @property
    def campaign(self) -> Mapping[str, Any]:
        """One that waits for traces as long as they take there."""
        return CAMPAIGN

    @property
    def processes(self) -> Processes:
        """Return all processes but servers."""
        return self.stack.processes

    @property
    def kafka(self) -> str:
        """Return where its broker listens."""
        return self.stack.broker.address

    @property
    def url(self) -> str:
        """Return where the API listens."""
        return self.stack.url

    @property
    def door(self) -> str:
        """Return where the API listens for halts alone."""
        return f"http://127.0.0.1:{self.stack.roles.doors['api']}"

    @property
    def database(self) -> str:
        """Return where the record is."""
        return self.stack.database

    @property
    def pids(self) -> Sequence[int]:
        """Of the API: it is where strangers come."""
        return [self.processes.pid("api")]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let nobody write experiments or the audit."""
        with self._connected() as connection:
            connection.execute("LOCK TABLE experiment, audit IN EXCLUSIVE MODE")
            yield

    def mend(self) -> None:
        """Start PostgreSQL again, if it has ended."""
        self.stack.postgresql.ready()

    def kill(self) -> float:
        """SIGKILL to both schedulers, of which one leads."""
        for name in SCHEDULERS:
            self.stack.roles.kill(name)
        return time.time()

    @property
    def log(self) -> str:
        """Return the logs of schedulers and API."""
        return "".join((self.folder / f"{each}.log").read_text() for each in (*SCHEDULERS, "api"))

    def _connected(self) -> psycopg.Connection[tuple[object, ...]]:
        named, server = make_url(self.database).database, self.stack.postgresql
        return psycopg.connect(host=str(server.folder), user=postgresql.USER, dbname=named)


@contextmanager
def on_stack(folder: Path, paths: Sequence[str]) -> Iterator[StackSite]:
    """Run all of it, and traffic with real edges. Raises Missing."""
    with ExitStack() as stack:
        disk = stack.enter_context(mounted(MEGABYTES))
        offset = folder / "offset"
        options = {**OPTIONS, **faketime.variables(offset, at_once=False)}
        all_of_it = stack.enter_context(running(folder, options, disk=disk.folder))
        traffic(all_of_it.processes, folder, all_of_it.url, all_of_it.collector.url, paths)
        yield StackSite(all_of_it, folder, offset, disk)
