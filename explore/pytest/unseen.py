"""What leaves the process during a run, and no span tells of: connections and child processes.

A call that nobody sees cannot be made to fail, and a test that passes without it proves nothing of
it. Python tells of every connection, request of ``http.client`` and child process itself (PEP 578).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import PurePath
from typing import Any, Final

from opentelemetry import context as otel_context
from opentelemetry import trace

from ldfi.explore.pytest.recorder import RELAY, Recorder

_CALLING: Final = frozenset({trace.SpanKind.CLIENT, trace.SpanKind.PRODUCER})
_PROBES: Final = frozenset(
    {
        *(
            "uname",
            "lscpu",
            "file",
            "ldconfig",
            "gcc",
            "cc",
            "objdump",
            "ld",
            "getconf",
            "lsb_release",
        )
    }
)
"""What Python's own library starts to learn about the machine."""
_OWN_PORTS: Final = {"postgresql": "5432", "mysql": "3306", "redis": "6379", "mongodb": "27017"}
"""Where a system is reached whose spans do not say so."""
_SUPPRESSED: Final = getattr(otel_context, "_SUPPRESS_INSTRUMENTATION_KEY", "suppress")
"""Under which key OpenTelemetry notes that a call is its own: an export."""
_NAMES: Final = ("server.address", "net.peer.name", "net.peer.ip", "peer.hostname")
_PORTS: Final = ("server.port", "net.peer.port", "peer.port")


class Untraced:
    """``left``: what was reached without a span around it, as (host, port), or a child process as
    (its name, ""); of all runs so far."""

    def __init__(self) -> None:
        self.left: dict[tuple[str, str], None] = {}

    def heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take an audit event of Python. Raises nothing."""
        recorder = RELAY.recorder
        reads = _READ.get(event)
        if recorder is None or reads is None or not recorder.runs or _accounted_for(recorder):
            return
        found = reads(arguments)
        if found is not None:
            self.left[found] = None

    def doubt(self, recorder: Recorder) -> str:
        """Return what was reached without a span; empty if spans name all of it. ``recorder``:
        of a run."""
        told = recorder.attributes()
        named = {str(said[name]) for said in told for name in _NAMES if name in said}
        ports = {str(said[name]) for said in told for name in _PORTS if name in said}
        ports |= {p for said in told for db, p in _OWN_PORTS.items() if db in said.values()}
        for host, port in self.left:
            if not port:
                return (
                    f"a child process was started ({host}), and what it calls is not seen: nothing "
                    "was tried there"
                )
            if host not in named and port not in ports:
                return (
                    f"{host}:{port} was called, and no span tells of it: nothing was tried there. "
                    "Call it through a client that has injection points (docs/injection-points.md)"
                )
        return ""


def _accounted_for(recorder: Recorder) -> bool:
    """Return whether a span of a call is around this, the test itself asks, or it is tracing's
    own."""
    if otel_context.get_value(_SUPPRESSED):
        return True
    kind = getattr(trace.get_current_span(), "kind", None)
    return kind in _CALLING or recorder.asked_by_the_test()


def _address(arguments: tuple[Any, ...]) -> tuple[str, str] | None:
    where = arguments[1] if len(arguments) > 1 else None
    if isinstance(where, tuple) and len(where) >= 2:
        return str(where[0]), str(where[1])
    return None  # a socket of the machine's own


def _requested(arguments: tuple[Any, ...]) -> tuple[str, str] | None:
    connection = arguments[0]
    host, port = getattr(connection, "host", None), getattr(connection, "port", None)
    return (str(host), str(port)) if host else None


def _started(arguments: tuple[Any, ...]) -> tuple[str, str] | None:
    command = arguments[0].decode() if isinstance(arguments[0], bytes) else arguments[0]
    if not command and len(arguments) > 1 and arguments[1]:
        command = arguments[1] if isinstance(arguments[1], str) else arguments[1][0]
    name = PurePath(str(command).split()[0] if command else "").name
    return None if not name or name in _PROBES else (name, "")


def _forked(_arguments: tuple[Any, ...]) -> tuple[str, str]:
    return "a fork of this one", ""


def _process(arguments: tuple[Any, ...]) -> tuple[str, str]:
    return str(arguments[0].name), ""


_PROCESS: Final = "ldfi.process"
"""An event of our own: Python has none for processes of multiprocessing that are not forked."""

_READ: Final[Mapping[str, Callable[[tuple[Any, ...]], tuple[str, str] | None]]] = {
    "socket.connect": _address,
    "http.client.send": _requested,
    "subprocess.Popen": _started,
    "os.fork": _forked,
    "os.forkpty": _forked,
    "os.posix_spawn": _started,
    "os.system": _started,
    _PROCESS: _process,
}
_listening: list[Untraced] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _listening and event in _READ:
        try:
            _listening[-1].heard(event, arguments)
        except Exception:  # noqa: BLE001 - what Python does must not fail of our watching
            return


_hooked: list[bool] = []


@contextmanager
def watched() -> Iterator[Untraced]:
    """Watch what leaves this process as long as this lasts. (A hook can never be taken out again:
    it idles.)"""
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked.append(True)
    unseen = Untraced()
    _listening.append(unseen)
    processes: Any = BaseProcess
    start = processes.start

    def started(process: BaseProcess) -> None:
        _hook(_PROCESS, (process,))
        start(process)

    processes.start = started
    try:
        yield unseen
    finally:
        processes.start = start
        _listening.remove(unseen)
