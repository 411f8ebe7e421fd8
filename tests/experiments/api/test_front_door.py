"""The door that everybody comes in by: shut while descriptors are scarce, and quietly so."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from ldfi.errors import Conflict
from ldfi.experiments.api.front_door import FrontDoor, front_doors

CLIENTS = 40


@pytest.fixture(autouse=True)
def scarce() -> Iterator[None]:
    """However a test ends, others find it as it was."""
    yield
    FrontDoor.scarce.clear()


@contextmanager
def nothing_left() -> Iterator[None]:
    """Leave this process no descriptor that is free."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open(os.devnull, os.O_RDONLY)  # all below are in use
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def complaints(door: socket.socket, seconds: float) -> tuple[list[dict[str, Any]], float]:
    """What asyncio has to complain of while somebody listens there for so long, and how long it
    was."""
    loop, said = asyncio.get_running_loop(), list[dict[str, Any]]()
    loop.set_exception_handler(lambda _, context: said.append(context))
    server = await loop.create_server(asyncio.Protocol, sock=door, backlog=2048)
    clients = [socket.socket() for _ in range(CLIENTS)]
    for each in clients:
        each.setblocking(False)
        each.connect_ex(door.getsockname())
    began = time.monotonic()
    with nothing_left():
        await asyncio.sleep(seconds)
    took = time.monotonic() - began
    for each in clients:
        each.close()
    server.close()
    return said, took


def test_who_cannot_be_let_in_is_said_once_a_second() -> None:
    """And not once for each of the 2,048 who may wait, while the loop can do nothing else."""
    (door,) = front_doors("127.0.0.1", 0)
    said, took = asyncio.run(complaints(door, 1.5))
    assert {each["exception"].strerror for each in said} == {"Too many open files"}
    assert len(said) in range(2, 2 + int(took))


def test_while_they_are_scarce_nobody_is_let_in() -> None:
    (door,) = front_doors("127.0.0.1", 0)
    door.setblocking(False)
    door.listen()
    with socket.create_connection(door.getsockname()), door:
        FrontDoor.scarce.set()
        with pytest.raises(OSError, match="Too many open files"):
            door.accept()
        FrontDoor.scarce.clear()
        # Who listens comes again in a second; until then it is as if nobody waited
        with pytest.raises(BlockingIOError):
            door.accept()


def test_who_waited_comes_in_when_there_are_some_again() -> None:
    async def let_in() -> bytes:
        (door,) = front_doors("127.0.0.1", 0)
        FrontDoor.scarce.set()
        server = await asyncio.start_server(lambda _, writer: writer.close(), sock=door)
        async with server:
            reader, writer = await asyncio.open_connection(*door.getsockname())
            await asyncio.sleep(0.2)
            FrontDoor.scarce.clear()
            said = await asyncio.wait_for(reader.read(), 5)
            writer.close()
        return said

    async def quietly() -> bytes:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        return await let_in()

    assert asyncio.run(quietly()) == b""


def test_an_address_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = rf"port: cannot listen on 127\.0\.0\.1:{port}: .*in use"
        with pytest.raises(Conflict, match=said):
            front_doors("127.0.0.1", port)


def test_a_name_that_nobody_has_is_named() -> None:
    with pytest.raises(Conflict, match=r"port: cannot listen on nobody\.invalid:80: "):
        front_doors("nobody.invalid", 80)


def test_a_host_is_listened_for_at_each_of_its_addresses() -> None:
    doors = front_doors("localhost", 0)
    assert {door.getsockname()[0] for door in doors} == addresses("localhost")
    for each in doors:
        each.close()


def addresses(host: str) -> set[str]:
    """Those of a host at which this machine can listen."""
    found = set()
    for family, *_, where in socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM):
        with suppress(OSError), socket.socket(family) as probe:
            probe.bind(where)
            found.add(str(where[0]))
    return found
