"""``python -m benchmarks.proxy [--json]``: what it costs a request to pass what is written in Go.

A real Envoy with two listeners before one upstream: one bare, one with the filter that ``ldfi
export envoy`` writes, which asks a real ``ldfi-proxy envoy``. Beside it ``ldfi-proxy reverse``, and
a bare ``httputil.ReverseProxy`` with as many idle connections. Eight clients
(``fit/go/internal/traffic``) ask each of them in turns, in rounds, every other round in the
opposite order: what is compared was measured within the same second or two. Figures are medians
over the rounds, with the interval in which the median lies with 95 % confidence (from the order of
the rounds, nothing assumed).

Processor time is that of the proxy's process, as the kernel counts it, while clients ask as fast as
they are answered. Latency is what clients see who then wait for ten milliseconds or so: it is no
measure of how many requests a second the machine can do; at full load it is shown beside, with no
target. The context of "a context" is signed and means another point, so every request goes on.

The library's benchmarks are Go's own (``go test -bench Unarmed``): a call or a request that carries
somebody's baggage and no context.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import comb
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.outcome import Row, Target, at_most, say
from ldfi.cli.ports import free_ports
from ldfi.fit.protocol.context import encode
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.keys import Keys
from ldfi.scenarios.export.envoy import listener
from tests.fit.golang import GO, built
from tests.scenarios.export.proxy import EXTENSIONS, envoy_binary

CONNECTIONS: Final = 8
KEY: Final = "bench:0123456789abcdef"
PATH: Final = "/titles/17"
PAUSE: Final = 10_000.0
"""Microseconds."""
SPARSE: Final = 5
"""So many times fewer requests where clients pause."""
CONFIDENCE: Final = 0.95
NANOSECONDS: Final = 150.0

Settled = Mapping[str, int]
"""Ports, by who listens there."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to the upstream: where it begins, whose processor time it takes, what is sent."""

    port: int
    process: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Cost:
    """What a request cost, in microseconds: the proxy's processor time, and what clients waited,
    one by one and at full load."""

    cpu: float
    latency: float
    loaded: float


def main() -> int:
    """Print the tables; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--requests", type=int, default=2000, help="in each round, of each way")
    given = parser.parse_args()
    with TemporaryDirectory() as folder, ExitStack() as stack:
        ways, load = standing(Path(folder), stack)
        for way in ways.values():  # connections are opened, what is compiled at once is
            load(way, given.requests)
        rounds = [measured(ways, load, given.requests, turn) for turn in range(given.rounds)]
    compared = [
        row("Envoy, no context", "filter", "bare", rounds),
        row("Envoy, a context", "filter, context", "bare, context", rounds),
        row("reverse proxy, no context", "ldfi-proxy", "httputil", rounds),
        row("reverse proxy, a context", "ldfi-proxy, context", "httputil, context", rounds),
    ]
    library = library_rows()
    met = say(
        {"proxies": compared, "library": library}, targets(compared, library), as_json=given.json
    )
    return 0 if met else 1


def targets(compared: Sequence[Row], library: Sequence[Row]) -> dict[str, Target]:
    """Hold the figures against what was promised."""
    none, some, reverse, _ = compared

    def figure(of: Row, column: str) -> float:
        return float(str(of[column]))

    return {
        "Envoy, no context: processor time, times Envoy bare": at_most(
            figure(none, "cpu ratio"), 1.03
        ),
        "Envoy, a context: µs more in the median": at_most(figure(some, "µs more"), 300.0),
        "reverse proxy: processor time, times httputil's": at_most(
            figure(reverse, "cpu ratio"), 1.2
        ),
        "reverse proxy: median latency, times httputil's": at_most(
            figure(reverse, "latency ratio"), 1.2
        ),
        "library, no context, worst: ns": at_most(
            max(figure(each, "ns") for each in library), NANOSECONDS
        ),
        "library, no context, worst: allocations": at_most(
            max(figure(each, "allocations") for each in library), 0
        ),
    }


def row(title: str, ours: str, bare: str, rounds: Sequence[Mapping[str, Cost]]) -> dict[str, Any]:
    """Compare two ways, round by round."""
    pairs = [(each[ours], each[bare]) for each in rounds]
    cpu = [one.cpu / other.cpu for one, other in pairs]
    latency = [one.latency / other.latency for one, other in pairs]
    more = [one.latency - other.latency for one, other in pairs]
    return {
        "way": title,
        "cpu µs": round(median(one.cpu for one, _ in pairs), 1),
        "bare cpu µs": round(median(other.cpu for _, other in pairs), 1),
        "cpu ratio": round(median(cpu), 4),
        "cpu interval": interval(cpu),
        "latency ratio": round(median(latency), 4),
        "latency interval": interval(latency),
        "µs more": round(median(more), 1),
        "more interval": interval(more),
        "µs more, full load": round(median(one.loaded - other.loaded for one, other in pairs), 1),
    }


def interval(values: Sequence[float]) -> list[float]:
    """Find the narrowest order statistics between which the median lies with 95 % confidence."""
    ordered, many = sorted(values), len(values)
    outside, below = 0.0, 0
    while below < many // 2 and 2 * (outside + comb(many, below) / 2**many) <= 1 - CONFIDENCE:
        outside += comb(many, below) / 2**many
        below += 1
    first = max(below - 1, 0)
    return [round(ordered[first], 4), round(ordered[-1 - first], 4)]


def measured(ways: Mapping[str, Way], load: Any, requests: int, turn: int) -> dict[str, Cost]:
    """Ask each way once, in turns."""
    names = list(ways)[:: 1 if turn % 2 else -1]
    found = {}
    for name in names:
        before = processor_time(ways[name].process)
        took = load(ways[name], requests)
        spent = processor_time(ways[name].process) - before
        paced = load(ways[name], requests // SPARSE, PAUSE)
        found[name] = Cost(spent / len(took) * 1e6, median(paced), median(took))
    return found


def processor_time(process: int) -> float:
    """Read the seconds that a process has had of all processors, to the nanosecond.

    The clock of a process as Linux numbers it (``clock_getcpuclockid``), which Python does not have
    for processes of others.
    """
    return time.clock_gettime((~process << 3) | 2)


def standing(folder: Path, stack: ExitStack) -> tuple[dict[str, Way], Any]:
    """Start everything, and return the ways to the upstream and what asks them."""
    proxy = built("ldfi-proxy", folder)
    traffic = built("traffic", folder, "./internal/traffic")
    upstream, bare, filtered, asked, ours, plain = free_ports(6)
    written = folder / "envoy.json"
    written.write_text(json.dumps(configuration(upstream, bare, filtered, asked)))
    environment = {
        "PATH": os.environ["PATH"],
        "FIT_KEYS": KEY,
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",  # nothing fires, nothing is sent
    }
    to = f"http://127.0.0.1:{upstream}"

    def start(port: int, *words: object) -> int:
        return stack.enter_context(running([str(each) for each in words], port, environment))

    start(upstream, traffic, "upstream", f"127.0.0.1:{upstream}")
    start(asked, proxy, "envoy", "--listen", f"127.0.0.1:{asked}", "--caller", "api")
    quiet = ("--concurrency", "1", "--disable-hot-restart", "--log-level", "error")
    envoy = start(filtered, envoy_binary(), "-c", written, *quiet)
    reverse = start(
        ours,
        *(proxy, "reverse", "--listen", f"127.0.0.1:{ours}", "--upstream", to, "--caller", "api"),
    )
    other = start(plain, traffic, "reverse", f"127.0.0.1:{plain}", to)
    user = {"baggage": "user=u1,tier=gold"}
    context = {
        "baggage": f"user=u1,fit={elsewhere()}",
        "traceparent": f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01",
    }
    ways = {
        "bare": Way(bare, envoy, user),
        "filter": Way(filtered, envoy, user),
        "bare, context": Way(bare, envoy, context),
        "filter, context": Way(filtered, envoy, context),
        "httputil": Way(plain, other, user),
        "ldfi-proxy": Way(ours, reverse, user),
        "httputil, context": Way(plain, other, context),
        "ldfi-proxy, context": Way(ours, reverse, context),
    }
    return ways, stack.enter_context(clients(traffic))


def elsewhere() -> str:
    """Sign a context that means another point."""
    faults = [Fault("api>http:GET:elsewhere/titles/*", "error")]
    return encode(Keys.parse(KEY), "e1", "treatment", int(time.time()) + 3600, faults)


@contextmanager
def clients(traffic: Path) -> Iterator[Any]:
    """Start the clients; what is yielded has them ask, and lists latencies in microseconds."""
    with subprocess.Popen(
        [str(traffic), "load"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        told, heard = process.stdin, process.stdout

        def load(way: Way, requests: int, pause: float = 0.0) -> list[float]:
            wanted = {
                "url": f"http://127.0.0.1:{way.port}{PATH}",
                "connections": CONNECTIONS,
                "requests": requests,
                "pause": pause,
                "headers": dict(way.headers),
            }
            told.write(json.dumps(wanted) + "\n")
            told.flush()
            took: list[float] = json.loads(heard.readline())
            return took

        yield load


@contextmanager
def running(words: Sequence[str], port: int, environment: Mapping[str, str]) -> Iterator[int]:
    """Run a program that listens at a port; its process id."""
    with subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + 60
            while not listens(port):
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"{words[0]} does not listen at {port}")
                time.sleep(0.05)
            yield process.pid
        finally:
            process.terminate()


def listens(port: int) -> bool:
    """Return whether somebody listens at a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def configuration(upstream: int, bare: int, filtered: int, asked: int) -> dict[str, Any]:
    """Write Envoy's configuration: two listeners that differ in our filter alone."""
    exported = listener("api", "127.0.0.1", asked)
    end = {
        "name": "upstream",
        "load_assignment": {
            "cluster_name": "upstream",
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address(upstream)}}]}],
        },
    }
    listeners = [listening(bare, []), listening(filtered, exported["http_filters"])]
    return {"static_resources": {"listeners": listeners, "clusters": [end, *exported["clusters"]]}}


def listening(port: int, filters: list[dict[str, Any]]) -> dict[str, Any]:
    """Write one listener."""
    router = {
        "name": "envoy.filters.http.router",
        "typed_config": {"@type": f"{EXTENSIONS}.filters.http.router.v3.Router"},
    }
    passing = {"match": {"prefix": "/"}, "route": {"cluster": "upstream"}}
    manager = {
        "@type": f"{EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "bench",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [passing]}]},
        "http_filters": [*filters, router],
    }
    chain = {"filters": [{"name": "http", "typed_config": manager}]}
    return {"address": address(port), "filter_chains": [chain]}


def address(port: int) -> dict[str, Any]:
    """Write a port on loopback."""
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


_BENCHMARK: Final = re.compile(
    r"^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op.*?(\d+) allocs/op", re.M
)


def library_rows(times: int = 9) -> list[dict[str, Any]]:
    """Run Go's benchmarks of calls without a context; the median of several times each."""
    words = ["go", "test", "-run", "^$", "-bench", "Unarmed", "-benchmem", "-benchtime", "200ms"]
    words += ["-count", str(times), ".", "./fitgrpc", "./fitsql"]
    done = subprocess.run(
        words,
        cwd=GO.resolve(),
        env={**os.environ, "GOFLAGS": "-buildvcs=false"},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, list[tuple[float, int]]] = {}
    for name, nanoseconds, allocations in _BENCHMARK.findall(done.stdout):
        found.setdefault(name, []).append((float(nanoseconds), int(allocations)))
    return [
        {
            "call": name,
            "ns": round(median(each[0] for each in runs), 1),
            "ns interval": interval([each[0] for each in runs]),
            "allocations": max(each[1] for each in runs),
        }
        for name, runs in found.items()
    ]


if __name__ == "__main__":
    sys.exit(main())
