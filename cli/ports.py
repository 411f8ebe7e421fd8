"""Ports for processes that are told where to listen."""

from __future__ import annotations

import secrets
import socket
from contextlib import ExitStack, suppress
from typing import Final

FIRST: Final = 15_000
MANY: Final = 15_000
"""From the first on. Above them are those that systems give to connections by themselves (32768 or
49152 on): one of these might be gone by the time that somebody listens there."""


def free_port() -> int:
    """Find a port on loopback that nobody listens on just now."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Find different ones."""
    found: list[int] = []
    with ExitStack() as held:
        while len(found) < count:
            port = FIRST + secrets.randbelow(MANY)
            probe = held.enter_context(socket.socket())
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
    return found


def free_row(count: int) -> int:
    """Find the first of so many in a row. Who looks at the same time finds others, but for a rare
    chance. Raises RuntimeError."""
    firsts = range(FIRST, FIRST + MANY - count)
    for first in secrets.SystemRandom().sample(firsts, len(firsts)):
        with ExitStack() as held, suppress(OSError):
            for port in range(first, first + count):
                held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise RuntimeError(f"there are no {count} free ports in a row")
