"""A service under gevent: who of its greenlets has a request's context, and what the others lose.

Each way is gone in a process of its own, which gevent takes over before or after everything else.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, Final

import pytest

pytestmark = pytest.mark.servers

SEEN: Final = {"itself", "copy"}
EXPECTED: Final = {
    "error": 503,
    "": 200,
    "delay": 200,
    "status:404": 404,
    "reset": "ConnectionError",
}


@pytest.fixture(scope="module", params=["first", "late"])
def found(request: pytest.FixtureRequest) -> Any:
    words = [sys.executable, "-W", "ignore", "-m", "tests.fit.gevent_host", request.param]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_call_of_a_greenlet_without_the_context_is_let_through_and_counted(found: Any) -> None:
    for carrier, seen in found["plain"].items():
        hit = carrier in SEEN
        assert seen == {"status": 503 if hit else 200, "bare": int(not hit), "alone": 0}, carrier


def test_an_instrumented_one_is_in_a_trace_of_its_own(found: Any) -> None:
    for carrier, seen in found["instrumented"].items():
        hit = carrier in SEEN
        assert seen == {"status": 503 if hit else 200, "bare": 0, "alone": int(not hit)}, carrier


def test_the_instrumentation_of_threads_hands_it_on_to_those_that_gevent_makes(found: Any) -> None:
    for carrier, seen in found["threads"].items():
        assert seen == {"status": 503, "bare": 0, "alone": 0}, carrier


def test_no_fault_meets_the_request_of_another_greenlet(found: Any) -> None:
    assert len(found["beside"]) == 18
    for each in found["beside"]:
        assert each["said"] == EXPECTED[each["kind"]], each
    slow = [each["took"] for each in found["beside"] if each["kind"] == "delay"]
    assert sum(slow) > 1.5  # and they hang beside each other: nobody holds the others up
    assert max(each["ended"] for each in found["beside"]) < sum(slow)


def test_a_greenlet_that_outlives_its_request_is_let_through(found: Any) -> None:
    assert found["outlived"] == 200
