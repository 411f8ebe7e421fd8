"""The command line: run in this process, for a process of its own takes a second to start."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from subprocess import CompletedProcess
from typing import Any, Final

import pytest

from ldfi.cli.main import main
from ldfi.experiments.cluster.tokens import Role
from tests.kit.service import GIVEN

PROGRAM: Final = (sys.executable, "-m", "ldfi.cli")


class Terminal(io.StringIO):
    """What somebody looks at."""

    def isatty(self) -> bool:
        return True


def ldfi(*words: str, **env: str) -> CompletedProcess[str]:
    """Run a command in this process; returns its exit code and what it printed and said.

    It has 120 columns if ``env`` does not say otherwise, and no terminal. Raises what the command
    lets out, which would be a traceback.
    """
    return _run(words, env, io.StringIO())


def _run(words: tuple[str, ...], env: Mapping[str, str], out: io.StringIO) -> CompletedProcess[str]:
    err = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["ldfi", *words])
        patch.setattr(signal, "signal", lambda *_: None)
        for name, value in {"COLUMNS": "120", **env}.items():
            patch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            main()
    return CompletedProcess(words, int(ended.value.code or 0), out.getvalue(), err.getvalue())


def ldfi_process(*words: str, **env: str) -> CompletedProcess[str]:
    """Run a command in a process of its own."""
    return subprocess.run(
        [*PROGRAM, *words],
        env={**os.environ, "COLUMNS": "120", **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@dataclass(frozen=True)
class At:
    """The command line, told where the service is: as somebody of a ``role`` has it."""

    url: str
    role: Role = "operator"
    columns: int = 100

    def env(self) -> dict[str, str]:
        """The variables that tell a command so."""
        token = GIVEN[self.role]
        return {"LDFI_URL": self.url, "LDFI_TOKEN": token, "COLUMNS": str(self.columns)}

    def run(self, *words: str) -> CompletedProcess[str]:
        """Run a command, whatever becomes of it."""
        return ldfi(*words, **self.env())

    def __call__(self, *words: str, code: int = 0) -> str:
        """Return what a command prints; raises AssertionError where it ends with another code."""
        done = self.run(*words)
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout

    def json(self, *words: str, code: int = 0) -> Any:
        """Return the document that a command prints for programs."""
        return json.loads(self(*words, "--json", code=code))

    def refused(self, *words: str, code: int = 2) -> str:
        """Return what a command complains of; raises AssertionError where it does not."""
        done = self.run(*words)
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stderr

    def shown(self, *words: str) -> str:
        """Return what a command shows at a terminal."""
        done = _run(words, {**self.env(), "LINES": "40", "TERM": "dumb"}, Terminal())
        assert done.returncode in {0, 1, 3}, (words, done.stdout, done.stderr)
        return done.stdout
