"""A server on loopback that speaks MongoDB's protocol, and fails as it is told to.

It is a replica set of one, so that PyMongo tries its reads and writes again. Of the commands it
knows those of the handshake, and to store documents and find them; whatever else is asked for goes
well. What a command does besides is said by ``does``: it tears the connection, closes it or never
answers. Without a real server at hand, that is what faults are held against: real sockets, the real
client.
"""

from __future__ import annotations

import socket
import struct
import threading
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import bson

_HEADER: Final = struct.Struct("<iiii")
_MESSAGE: Final = 2013
_QUERY: Final = 2004
_COMPRESSED: Final = 2012
_MORE_TO_COME: Final = 2


class MongoServer:
    """A server at ``port`` of this machine, which it calls ``host``; ends with :meth:`kill`."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.host = host
        self.does: dict[str, Callable[[socket.socket], None]] = {}
        """Command → what is done in place of answering it."""
        self.compresses = ""
        """The one way of compression that it offers, ``zlib``, or none."""
        self.asked: Counter[str] = Counter()
        """How often each command has come."""
        self.connections = 0
        """How many have been made, monitors' among them."""
        self._documents: defaultdict[str, list[Any]] = defaultdict(list)
        self._ends: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.port = 0
        self.start()

    def start(self) -> None:
        """Listen, at the same port as before."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = int(self._listener.getsockname()[1])
        self._threads = [threading.Thread(target=self._accept, args=(self._listener,), daemon=True)]
        self._threads[0].start()

    def kill(self) -> None:
        """End without a word: its connections are closed, and nobody listens any more."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for end in self._ends:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join(30)

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                end, _ = listener.accept()
                with self._lock:
                    self._ends.add(end)
                    self.connections += 1
                thread = threading.Thread(target=self._serve, args=(end,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, end: socket.socket) -> None:
        with end, suppress(OSError, EOFError):
            while True:
                self._answer(end)
        with self._lock:
            self._ends.discard(end)

    def _answer(self, end: socket.socket) -> None:
        length, number, _, opcode = _HEADER.unpack(_read(end, _HEADER.size))
        body = _read(end, length - _HEADER.size)
        if opcode == _COMPRESSED:
            opcode, body = int.from_bytes(body[:4], "little"), zlib.decompress(body[9:])
        if opcode == _QUERY:  # the first of a connection, by older releases of PyMongo
            said = _reply(number, 1, struct.pack("<iqii", 8, 0, 0, 1) + self._encoded({"hello": 1}))
        else:
            flags, command = _command(body)
            verb = next(iter(command))
            with self._lock:
                self.asked[verb] += 1
            if verb in self.does:
                self.does[verb](end)
                return
            answer = self._encoded(command)
            if flags & _MORE_TO_COME:
                return
            said = _reply(number, _MESSAGE, struct.pack("<IB", 0, 0) + answer)
        end.sendall(said)

    def _encoded(self, command: dict[str, Any]) -> bytes:
        verb = next(iter(command))
        said: dict[str, Any] = {}
        if verb in ("hello", "ismaster", "isMaster"):
            said = self._hello()
        elif verb == "insert":
            said = self._insert(command)
        elif verb == "find":
            said = self._find(command)
        return bson.encode({**said, "ok": 1.0})

    def _hello(self) -> dict[str, Any]:
        me = f"{self.host}:{self.port}"
        return {
            "helloOk": True,
            "isWritablePrimary": True,
            "ismaster": True,
            "secondary": False,
            "setName": "rs",
            "setVersion": 1,
            "hosts": [me],
            "primary": me,
            "me": me,
            "maxBsonObjectSize": 1 << 24,
            "maxMessageSizeBytes": 48_000_000,
            "maxWriteBatchSize": 100_000,
            "logicalSessionTimeoutMinutes": 30,
            "minWireVersion": 0,
            "maxWireVersion": 21,
            "readOnly": False,
            "compression": [self.compresses] if self.compresses else [],
        }

    def _insert(self, command: dict[str, Any]) -> dict[str, Any]:
        self._documents[command["insert"]] += command["documents"]
        return {"n": len(command["documents"])}

    def _find(self, command: dict[str, Any]) -> dict[str, Any]:
        wanted = command.get("filter", {}).items()
        stored = self._documents[command["find"]]
        found = [each for each in stored if wanted <= each.items()]
        where = f"{command['$db']}.{command['find']}"
        return {"cursor": {"id": 0, "ns": where, "firstBatch": found[: command.get("limit")]}}


def tear(end: socket.socket) -> None:
    """Reset a connection."""
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.close()


def ignore(_end: socket.socket) -> None:
    """Never answer."""


def _read(end: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        more = end.recv(size - len(found))
        if not more:
            raise EOFError
        found += more
    return found


def _reply(number: int, opcode: int, body: bytes) -> bytes:
    return _HEADER.pack(_HEADER.size + len(body), 0, number, opcode) + body


def _command(body: bytes) -> tuple[int, dict[str, Any]]:
    """Read the sections of a message as one command."""
    (flags,) = struct.unpack_from("<I", body)
    command: dict[str, Any] = {}
    at = 4
    while at < len(body):
        kind, length = body[at], int.from_bytes(body[at + 1 : at + 5], "little")
        section = body[at + 1 : at + 1 + length]
        if kind == 0:
            command |= bson.decode(section)
        else:
            name, _, documents = section[4:].partition(b"\0")
            command[name.decode()] = bson.decode_all(documents)
        at += 1 + length
    return flags, command
