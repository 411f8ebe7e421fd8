"""Processes that a command starts and must not leave behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO

from ldfi.errors import ExperimentsError

STOP_SECONDS = 8.0
ATTACHED = "LDFI_ATTACHED"
"""Set for processes that shall end when whoever started them is gone, even if killed."""


class Processes:
    """Starts processes, each in a group of its own, and stops them all when the block is left."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: dict[str, subprocess.Popen[str]] = {}

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> IO[str]:
        """Start a process and return its standard output; its log is added to a file of its name.

        The write end of its standard input stays with us: a child that watches it notices when
        we are gone, however that came about.
        """
        with (self._logs / f"{name}.log").open("a") as log:
            process = subprocess.Popen(  # noqa: S603 - our own commands
                list(command),
                env={**os.environ, **env, ATTACHED: "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self._running[name] = process
        if process.stdout is None:
            raise AssertionError("stdout is a pipe")
        return process.stdout

    def pid(self, name: str) -> int:
        """Tell the number that the system knows a process by."""
        return self._running[name].pid

    def check(self) -> None:
        """Raise ExperimentsError, with the end of its log, when one has died."""
        for name, process in self._running.items():
            if process.poll() is not None:
                tail = (self._logs / f"{name}.log").read_text()[-2000:]
                raise ExperimentsError(f"{name} ended with status {process.returncode}:\n{tail}")

    def kill(self, name: str) -> None:
        """SIGKILL to a process and all of its group: no handler runs."""
        process = self._running.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        _close(process)

    def end(self, name: str, seconds: float) -> None:
        """Ask one to stop and wait for that. Raises ExperimentsError where it takes longer."""
        process = self._running[name]
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise ExperimentsError(f"{name} does not end within {seconds:.0f} s") from None
        del self._running[name]
        _close(process)

    def stop(self) -> None:
        """Ask each to stop, newest first; insist after some seconds."""
        stopping = list(reversed(self._running.values()))
        for process in stopping:
            process.terminate()
        end = time.monotonic() + STOP_SECONDS
        for process in stopping:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, end - time.monotonic()))
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            _close(process)
        self._running.clear()


def _close(process: subprocess.Popen[str]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


def end_with_parent() -> None:
    """In a process that was started attached: terminate when standard input comes to its end.

    The writing end is held by the parent alone, so the kernel closes it however the parent ends.
    """
    if os.environ.get(ATTACHED):
        threading.Thread(target=_await_end, daemon=True).start()


def _await_end() -> None:
    while os.read(sys.stdin.fileno(), 1):  # not the buffer: its lock would be held at the exit
        pass
    os.kill(os.getpid(), signal.SIGTERM)
