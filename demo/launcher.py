"""Processes: one per service, forked from a parent that has imported everything once.

The parent binds every socket before the first fork, so ports are known and nobody can take them.

Nothing may outlive the parent, however it dies. Each child holds the reading end of a pipe whose
writing end only the parent has: the kernel closes it with the parent, and the child sees the end
of the file. That needs no signal, no supervisor and no particular operating system.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from ldfi.demo import resolver

STOP_SECONDS = 4.0
READY_SECONDS = 180.0


class Launcher:
    """Starts children, and stops all of them."""

    def __init__(self) -> None:
        self.children: dict[str, int] = {}
        self._lifeline, self._held = os.pipe()

    def start(self, name: str, body: Callable[[], None]) -> None:
        """Run ``body`` in a process of its own."""
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid:
            self.children[name] = pid
            return
        status = 1
        try:
            os.close(self._held)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            threading.Thread(target=_die_with_parent, args=(self._lifeline,), daemon=True).start()
            body()
            status = 0
        except BaseException:  # noqa: BLE001 - a forked child must not return into its parent's code
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)

    def ended(self) -> dict[str, int]:
        """Collect children that are gone by themselves, with their exit statuses."""
        gone = {}
        for name, pid in list(self.children.items()):
            reaped, status = os.waitpid(pid, os.WNOHANG)
            if reaped:
                gone[name] = os.waitstatus_to_exitcode(status)
                del self.children[name]
        return gone

    def stop(self) -> None:
        """Ask every child to stop, wait a little, then insist."""
        self._signal(signal.SIGTERM)
        end = time.monotonic() + STOP_SECONDS
        while self.children and time.monotonic() < end:
            self.ended()
            time.sleep(0.02)
        self._signal(signal.SIGKILL)
        for pid in self.children.values():
            os.waitpid(pid, 0)
        self.children.clear()

    def _signal(self, number: signal.Signals) -> None:
        for pid in self.children.values():
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def _die_with_parent(lifeline: int) -> None:
    os.read(lifeline, 1)
    os._exit(0)


def listen(names: Iterable[str], base_port: int = 0) -> dict[str, socket.socket]:
    """Open a listening socket on loopback for every name; free ports unless ``base_port`` is
    given."""
    return {
        name: listen_at("127.0.0.1", base_port and base_port + place)
        for place, name in enumerate(names)
    }


def listen_at(host: str, port: int) -> socket.socket:
    """Open a listening socket.

    It says IPPROTO_TCP where 0 would do: asyncio turns Nagle's algorithm off only then, and without
    that an answer in two writes takes 40 ms longer.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((host, port))
    listening.listen(512)
    return listening


def publish(sockets: Mapping[str, socket.socket]) -> dict[str, str]:
    """Tell this process, and all that it starts, where every service listens."""
    hosts = {name: f"127.0.0.1:{bound.getsockname()[1]}" for name, bound in sockets.items()}
    os.environ[resolver.VARIABLE] = json.dumps(hosts)
    return hosts


def wait_until_healthy(hosts: Mapping[str, str], launcher: Launcher) -> None:
    """Poll every service. Raises RuntimeError when one dies or stays silent."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + READY_SECONDS
    waiting = dict(hosts)
    while waiting:
        for name, address in list(waiting.items()):
            with suppress(OSError), direct.open(f"http://{address}/healthz", timeout=1.0):
                del waiting[name]
        if dead := launcher.ended():
            raise RuntimeError(f"ended before it was ready: {dead}")
        if waiting and time.monotonic() > end:
            raise RuntimeError(f"not ready within {READY_SECONDS:.0f} s: {sorted(waiting)}")
        time.sleep(0.02)
