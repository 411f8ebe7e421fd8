"""Where everybody comes in. While descriptors are scarce nobody does, so that whoever must have the
last ones, the door that ``ldfi halt`` comes in by, gets what is freed.
"""

from __future__ import annotations

import errno
import os
import socket
import threading
import time
from typing import Any, ClassVar, Final

from ldfi.errors import Conflict

SHUT_SECONDS: Final = 0.9
"""How long nobody is let in after a descriptor was missing: asyncio asks again after a second, but
until then as often as connections may wait, each time with a traceback."""


class FrontDoor(socket.socket):
    """Where everybody listens for connections but who must have the last descriptors. These say
    when they are ``scarce``, and until they say otherwise nobody is let in here: whatever is freed
    meanwhile would be gone before they get it."""

    scarce: ClassVar[threading.Event] = threading.Event()
    _shut_until: float = 0.0

    def accept(self) -> tuple[socket.socket, Any]:
        """Let one in. Raises OSError where no descriptor is left for it, and BlockingIOError, as
        where nobody waits, for a while after that."""
        if time.monotonic() < self._shut_until:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        try:
            return self._accept_unless_scarce()
        except OSError as error:
            if error.errno in {errno.EMFILE, errno.ENFILE}:
                self._shut_until = time.monotonic() + SHUT_SECONDS
            raise

    def _accept_unless_scarce(self) -> tuple[socket.socket, Any]:
        if self.scarce.is_set():
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().accept()


def front_doors(host: str, port: int) -> list[socket.socket]:
    """Bind one to each address of a host that this machine has. Nobody can connect before they
    listen. Raises Conflict."""
    kind, flags = socket.SOCK_STREAM, socket.AI_PASSIVE
    doors: list[socket.socket] = []
    try:
        missing: OSError | None = None
        for family, *_, where in socket.getaddrinfo(host or None, port, type=kind, flags=flags):
            try:
                doors.append(_bound(family, where))
            except OSError as error:
                if error.errno not in {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL}:
                    raise
                missing = error
        if missing is not None and not doors:
            raise missing
    except OSError as error:
        for each in doors:
            each.close()
        raise cannot_listen("port", host, port, error) from error
    return doors


def _bound(family: int, where: Any) -> FrontDoor:
    door = FrontDoor(family, socket.SOCK_STREAM)
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:  # else it would be that of IPv4 as well
            door.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        door.bind(where)
    except OSError:
        door.close()
        raise
    return door


def cannot_listen(setting: str, host: str, port: int, error: OSError) -> Conflict:
    """Make of it what its reader can mend."""
    return Conflict(f"{setting}: cannot listen on {host}:{port}: {error}")
