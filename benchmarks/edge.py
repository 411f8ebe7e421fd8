"""``python -m benchmarks.edge [--json]``: what the edge costs, with a hundred experiments armed.

Every rule yields to all that were armed before it, and all are about the request's class, so that
the last one's devices are the dearest. A decision is timed through the whole middleware, less the
bare application. Times are the best of many short runs, as ``timeit`` advises: what is slower than
that is not the edge but whatever else runs on the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median
from typing import Any

from benchmarks.outcome import Row, at_most, say
from ldfi import fit
from ldfi.fit.clock import steady
from ldfi.fit.poll import RulesPoll
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.keys import Keys
from ldfi.fit.protocol.predicate import Condition, Predicate
from ldfi.fit.protocol.rules import ARMED_WAIT_SECONDS, Lease, Rule
from ldfi.fit.runtime import Runtime, activate

RULES = 100
SHARE = 0.005
BOOT = Predicate.of([Condition("method", "GET"), Condition("path", "/boot")])
DEVICE = b"x-device-id"


def rules(count: int) -> tuple[Rule, ...]:
    """Make rules of one class, each yielding to those before it."""
    armed: list[Rule] = []
    for number in range(count):
        faults = (Fault(f"api>http:GET:service-{number}/things/*", "error"),)
        earlier = tuple(rule.claim for rule in armed)
        name = f"e{number}"
        armed.append(
            Rule(name, f"salt-{name}", BOOT, SHARE, SHARE, faults, members=1000, yields_to=earlier)
        )
    return tuple(armed)


class Held(RulesPoll):
    """A poll that holds what it is given, and asks nobody."""

    def start(self) -> None:
        """Do nothing: there is nothing to start."""


async def _bare(scope: Any, receive: Any, send: Any) -> None:
    """Do nothing at all as the application, so that only the edge is left to time."""


def device_of(armed: tuple[Rule, ...], arm: str | None) -> str:
    """Find a device in one arm of the last rule, or in no arm of any."""
    lease = Lease(armed)
    for number in range(10_000_000):
        device = f"device-{number}"
        found = lease.allocate({"method": "GET", "path": "/boot"}, device)
        if (found is None) if arm is None else (found == (armed[-1], arm)):
            return device
    raise LookupError(f"no device in {arm}")


def request(*headers: tuple[bytes, bytes]) -> dict[str, Any]:
    """Make a request as a browser sends it."""
    usual = [
        (b"host", b"www.example.org"),
        (b"user-agent", b"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
        (b"accept", b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
        (b"accept-language", b"en-US,en;q=0.5"),
        (b"accept-encoding", b"gzip, deflate, br"),
        (b"cookie", b"session=0123456789abcdef0123456789abcdef"),
        (b"baggage", b"user=u1,tier=gold"),
    ]
    return {
        "type": "http",
        "method": "GET",
        "path": "/boot",
        "query_string": b"page=2",
        "headers": [*usual, *headers],
    }


def microseconds(app: Any, scope: dict[str, Any], runs: int) -> float:
    """Measure the time of one call, in the best of so many runs of a hundred."""

    async def run() -> float:
        times = []
        for _ in range(runs):
            began = time.perf_counter()
            for _ in range(100):
                await app(scope, None, None)
            times.append((time.perf_counter() - began) / 100)
        return min(times) * 1e6

    return asyncio.run(run())


def decisions(armed: tuple[Rule, ...], runs: int) -> list[dict[str, Any]]:
    """Measure what the edge adds to requests of several kinds."""
    poll = Held("http://127.0.0.1:9", "")
    poll.hold(Lease(armed, steady() + 3600))
    app = fit.EdgeMiddleware(_bare, poll)
    kinds: dict[str, dict[str, Any]] = {
        "in no arm": request((DEVICE, device_of(armed, None).encode())),
        "treated": request((DEVICE, device_of(armed, "treatment").encode())),
        "control": request((DEVICE, device_of(armed, "control").encode())),
        "no device": request(),
        "foreign context": request((b"baggage", b"fit=1.k.e.t.1.e.x")),
    }
    rows = []
    for kind, scope in kinds.items():
        bare = microseconds(_bare, scope, runs)
        rows.append({"request": kind, "µs": round(microseconds(app, scope, runs) - bare, 2)})
    return rows


def polling(armed: tuple[Rule, ...], times: int) -> dict[str, Any]:
    """Measure the processor time of one poll whose answer has not changed, over HTTP on
    loopback."""
    document = {"version": "v", "lease_seconds": 10, "rules": [rule.to_json() for rule in armed]}
    body = json.dumps(document).encode()

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        poll = RulesPoll(f"http://127.0.0.1:{server.server_port}", "token")
        first = _thread_seconds(poll._ask)
        spent = [_thread_seconds(poll._ask) for _ in range(times)]
        server.shutdown()
    return {
        "rules": len(armed),
        "bytes": len(body),
        "first_ms": round(first * 1e3, 2),
        "again_ms": round(median(spent) * 1e3, 2),
        "share_of_a_core": round(median(spent) / ARMED_WAIT_SECONDS, 5),
    }


def _thread_seconds(work: Callable[[], None]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


def main() -> int:
    """Print the tables; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=200, help="runs of a hundred requests each")
    given = parser.parse_args()
    activate(Runtime("edge", Keys.parse("bench:0123456789abcdef")))
    armed = rules(RULES)
    decided = decisions(armed, given.runs)
    polls: list[Row] = [polling(armed[:10], 50), polling(armed, 50)]
    targets = {
        f"µs of a decision with {RULES} rules, {row['request']}": at_most(row["µs"], 30.0)
        for row in decided
    }
    targets["share of a core for polling, ten rules"] = at_most(
        float(str(polls[0]["share_of_a_core"])), 0.01
    )
    met = say({"decisions": decided, "polling": polls}, targets, as_json=given.json)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
