"""Real servers that clients are held against."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_connection
from typing import Any

import pytest

from deploy.stack import postgresql
from deploy.stack.missing import Missing
from tests.fit.clients.dying import nobody
from tests.kit import needs

Server = subprocess.Popen[bytes]


@contextmanager
def redis_running(folder: Path, *options: str) -> Iterator[tuple[int, Server]]:
    """A Redis on loopback: its port, and its process."""
    words = [needs.program("redis-server"), "--save", "", "--appendonly", "no"]
    with nobody() as port:
        where = ["--port", str(port), "--dir", str(folder)]
        server = subprocess.Popen([*words, *where, *options], stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 20
        while True:
            try:
                create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < deadline, f"Redis does not listen at port {port}"
                time.sleep(0.02)
        yield port, server
    finally:
        server.kill()
        server.wait(10)


@contextmanager
def postgresql_running(**options: Any) -> Iterator[Any]:
    """A PostgreSQL of our own."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(postgresql, "START_SECONDS", 120.0)
        try:
            with postgresql.running(**options) as server:
                yield server
        except Missing as missing:
            needs.lacking(str(missing))
