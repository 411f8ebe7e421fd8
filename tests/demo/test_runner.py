"""The runner: it starts real processes, and however it ends none of them is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import httpx
import pytest

GONE_WITHIN = 8.0


@pytest.mark.parametrize("end", ["terminated", "killed", "stdin closed"])
def test_no_process_outlives_the_runner(end: str) -> None:
    # Given a running demo, whose gateway answers
    options = ["--rates", "boot=4"] if end == "terminated" else ["--no-devices"]
    runner = _start(*options)
    assert runner.stdout is not None
    assert runner.stdin is not None
    ready: dict[str, Any] = json.loads(runner.stdout.readline())
    try:
        assert httpx.get(ready["gateway"] + "/boot", timeout=10, trust_env=False).json()["rows"]
        assert all(map(_alive, ready["pids"]))

        # When the runner ends
        if end == "terminated":
            runner.send_signal(signal.SIGTERM)
        elif end == "killed":
            runner.kill()
        else:
            runner.stdin.close()
        status = runner.wait(GONE_WITHIN)

        # Then all it started ends too
        assert status == (-signal.SIGKILL if end == "killed" else 0)
        deadline = time.monotonic() + GONE_WITHIN
        while any(map(_alive, ready["pids"])) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert [pid for pid in ready["pids"] if _alive(pid)] == []
    finally:
        runner.kill()
        runner.wait()
        runner.stdin.close()
        runner.stdout.close()


def _start(*options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-m", "demo", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if not name.startswith("OTEL_")},
    )


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not _zombie(pid)


def _zombie(pid: int) -> bool:
    """An orphan that nobody has reaped yet is no running process."""
    shown = subprocess.run(  # noqa: S603 - a number
        ["/bin/ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return shown.stdout.strip()[:1] in {"Z", ""}
