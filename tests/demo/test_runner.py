"""The runner: it starts real processes, and however it ends none of them is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from ldfi.fit.protocol.context import Arm, encode
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.keys import Keys
from ldfi.fit.protocol.scenario import scenario_of

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


def test_the_shop_is_served_by_three_processes() -> None:
    runner = _start("--world", "shop", "--no-devices")
    assert runner.stdout is not None
    assert runner.stdin is not None
    ready: dict[str, Any] = json.loads(runner.stdout.readline())
    try:
        assert (len(ready["services"]), len(ready["pids"])) == (7, 3)
        home = httpx.get(ready["gateway"] + "/home", timeout=10, trust_env=False)
        assert home.json()["sections"]
        delivery = httpx.get(ready["gateway"] + "/checkout", timeout=10, trust_env=False)
        assert delivery.json()["delivery"]["known"]
    finally:
        runner.terminate()
        runner.wait(GONE_WITHIN)
        runner.stdin.close()
        runner.stdout.close()


@pytest.mark.parametrize("key", ["k:the-secret-of-this-test", ""], ids=["with key", "without"])
def test_a_signed_context_from_outside_breaks_what_it_names_and_nothing_without_a_key(
    key: str,
) -> None:
    # Given a demo that trusts a key, or none, and contexts that are signed with it
    runner = _start("--no-devices", FIT_KEYS=key)
    keys = Keys.parse("k:the-secret-of-this-test")
    assert runner.stdout is not None
    assert runner.stdin is not None
    gateway = json.loads(runner.stdout.readline())["gateway"]

    def ask(path: str, fault: str, arm: Arm = "treatment") -> httpx.Response:
        context = encode(
            keys,
            scenario_of("device-0001"),
            arm,
            int(time.time()) + 3600,
            [Fault.parse(fault)],
            delay_ms=3000,
        )
        headers = {"x-device-id": "device-0001", "baggage": f"fit={context}"}
        return httpx.get(gateway + path, headers=headers, timeout=10, trust_env=False)

    try:
        # Then a planted fault hurts where it is treatment, and a handled one does not
        license_ = "refused@api>http:GET:license/licenses/*"
        assert ask("/play/17", license_).status_code == (502 if key else 200)
        assert ask("/play/17", license_, "control").status_code == 200
        home = ask("/boot", "error@bookmarks>http:POST:recordsdb/query").json()
        assert [row.get("degraded") for row in home["rows"]].count(True) == (1 if key else 0)
        home = ask("/boot", "delay@profiles>function:maturity").json()
        assert (home["profile"]["maturity"] == "all ages") == bool(key)
    finally:
        runner.terminate()
        runner.wait(GONE_WITHIN)
        runner.stdin.close()
        runner.stdout.close()


def _start(*options: str, **environment: str) -> subprocess.Popen[bytes]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    return subprocess.Popen(
        [sys.executable, "-m", "ldfi.demo", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**ours, "FIT_KEYS": "", **environment},
    )


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not _zombie(pid)


def _zombie(pid: int) -> bool:
    """An orphan that nobody has reaped yet is no running process. Elsewhere than on Linux: no."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] == "Z"
