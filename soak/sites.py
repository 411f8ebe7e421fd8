"""The service under siege: its ports, its clock, its disk. One process on SQLite here; the whole
stack in :mod:`soak.stack_site`."""

from __future__ import annotations

import resource
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import httpx

from ldfi.cli.ports import free_port
from ldfi.cli.processes import Processes
from soak import faketime
from soak.disk import Disk, mounted
from soak.service import TOKENS, Service
from soak.synthetic import CAMPAIGN

DESCRIPTORS = 150
"""That a process may have while they are short: fewer than strangers take."""


class Site(Protocol):
    """``url``: of the API, ``door``: for halting alone. ``offset``: the file that sets the clocks
    of its processes. ``disk``: where all that it writes is. ``kafka``: the address of its broker,
    where it has one."""

    offset: Path
    disk: Disk

    @property
    def campaign(self) -> Mapping[str, Any]:
        """Return the campaign that is started there again and again."""

    @property
    def processes(self) -> Processes: ...

    @property
    def kafka(self) -> str: ...

    @property
    def url(self) -> str: ...

    @property
    def door(self) -> str: ...

    @property
    def database(self) -> str: ...

    @property
    def pids(self) -> Sequence[int]:
        """Of the processes of the service."""

    @contextmanager
    def held(self) -> Iterator[None]:
        """Have its database wait, and with it a tick that has just begun."""

    def mend(self) -> None:
        """Start again what a full disk has ended by itself, as whoever runs it would."""

    def kill(self) -> float:
        """SIGKILL to all that can grant a lease; when, in Unix seconds."""

    @property
    def log(self) -> str:
        """Return the log of the service."""


def ask(them: Site, method: str, path: str, body: Any = None, seconds: float = 90.0) -> Any:
    """Ask the API as an operator until it answers. Raises AssertionError where it does not, and
    ValueError where it never will."""
    headers = {"Authorization": f"Bearer {TOKENS['operator']}"}
    end, said = time.monotonic() + seconds, "nobody answered"
    while time.monotonic() < end:
        with suppress(httpx.HTTPError):
            url = f"{them.url}/api/v1{path}"
            answer = httpx.request(
                method, url, json=body, headers=headers, timeout=10.0, trust_env=False
            )
            if answer.is_success:
                return answer.json()
            said = f"{answer.status_code} {answer.text}"
            if answer.status_code == 422:
                raise ValueError(f"{method} {path}: {said}")
        time.sleep(0.1)
    raise AssertionError(f"{method} {path}: {said}, for {seconds:.0f} s\n{them.log[-3000:]}")


@contextmanager
def few_descriptors(them: Site) -> Iterator[None]:
    """Let its processes have no more than :data:`DESCRIPTORS`."""
    before = {pid: resource.prlimit(pid, resource.RLIMIT_NOFILE) for pid in them.pids}
    for pid, (_, hard) in before.items():
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, hard))
    try:
        yield
    finally:
        for pid, limits in before.items():
            with suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)


@dataclass
class SqliteSite:
    """One process, one file."""

    service: Service
    processes: Processes
    offset: Path
    disk: Disk
    kafka: str = ""
    _file: Path = field(default_factory=Path)

    @property
    def url(self) -> str:
        """Return where it listens."""
        return self.service.url

    @property
    def door(self) -> str:
        """Return where it listens for halts alone."""
        return f"http://127.0.0.1:{self.service.extra['LDFI_HALT_PORT']}"

    @property
    def database(self) -> str:
        """Return where the record is."""
        return self.service.database

    @property
    def campaign(self) -> Mapping[str, Any]:
        """Many short experiments."""
        return CAMPAIGN

    @property
    def pids(self) -> Sequence[int]:
        """Of the one process."""
        return [self.service.pid]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Take the one lock that there is for writing."""
        with sqlite3.connect(self._file, timeout=5.0, isolation_level=None) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
            connection.execute("ROLLBACK")
        connection.close()

    def mend(self) -> None:
        """Check that it goes on by itself."""
        self.service.check()

    def kill(self) -> float:
        """End it without a word."""
        return self.service.kill()

    @property
    def log(self) -> str:
        """Return its log."""
        return self.service.log


@contextmanager
def on_sqlite(folder: Path, paths: Sequence[str], hour: int = 1_000_000) -> Iterator[SqliteSite]:
    """Run the service, and traffic with real edges. Raises Missing."""
    with ExitStack() as stack:
        disk = stack.enter_context(mounted(48))
        file, offset = disk.folder / "ldfi.sqlite3", folder / "offset"
        extra = {**faketime.variables(offset, at_once=False), "LDFI_HALT_PORT": f"{free_port()}"}
        service = Service(f"sqlite:///{file}", folder, hour, extra=extra)
        service.start()
        stack.callback(service.stop)
        service.ready()
        processes = stack.enter_context(Processes(folder))
        traffic(processes, folder, service.url, service.url, paths)
        yield SqliteSite(service, processes, offset, disk, _file=file)


def traffic(
    processes: Processes,
    folder: Path,
    url: str,
    spans: str,
    paths: Sequence[str],
    rate: float = 40.0,
) -> None:
    """Start it, with its witness. One edge alone has no need to ask for each device, so that a
    service that is slow to answer does not keep everybody from being treated."""
    program = [sys.executable, "-m", "soak.traffic", "--url", url]
    options = ["--spans", spans, "--notes", str(folder / "notes"), "--paths", ",".join(paths)]
    processes.start("traffic", [*program, *options, "--rate", f"{rate}", "--edges", "1"], {})
