"""Servers on loopback that really fail, each in one way: what faults are held against."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

import pytest

Behaviour = Callable[[socket.socket], None]
"""What a server does with a connection."""


@contextmanager
def dying(behaviour: Behaviour, *, first: bool = False) -> Iterator[int]:
    """A server whose every connection ends so; its port.

    ``first``: as soon as it is there, and not only when something has come in.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.05)
    over = threading.Event()

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(5)
            if not first:
                connection.recv(65536)
            behaviour(connection)
            if behaviour is hang:
                over.wait(5)

    def accept() -> None:
        while not over.is_set():
            with suppress(TimeoutError):
                connection, _ = listener.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        over.set()
        thread.join()
        listener.close()


@contextmanager
def nobody() -> Iterator[int]:
    """A port on which nothing listens: of a server that was there and was killed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(listener.getsockname()[1])
    yield port


@contextmanager
def nowhere() -> Iterator[int]:
    """A port of a host that the system's resolver does not know, as it says itself."""

    def unknown(*_: object, **__: object) -> NoReturn:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.MonkeyPatch.context() as resolver:
        resolver.setattr(socket, "getaddrinfo", unknown)
        yield 8081


def reset(connection: socket.socket) -> None:
    """Tear the connection down: what a peer does whose process has no more of it."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def hang(connection: socket.socket) -> None:
    """Say nothing, for as long as the server lasts."""


def says(answer: bytes, *, over: float = 0.0, pieces: int = 10) -> Behaviour:
    """Answer with these bytes, and close. ``over``: the body comes over so many seconds, in so many
    pieces."""

    def say(connection: socket.socket) -> None:
        head, end, body = answer.partition(b"\r\n\r\n")
        connection.sendall(head + end)
        for number in range(pieces):
            time.sleep(over / pieces)
            size, more = divmod(len(body), pieces)
            start, stop = (at * size + min(at, more) for at in (number, number + 1))
            connection.sendall(body[start:stop])
        connection.shutdown(socket.SHUT_WR)
        with suppress(OSError):
            while connection.recv(65536):  # until the other end closes, too: no reset
                pass

    return say
