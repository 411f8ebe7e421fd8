"""Attackers as processes of their own: poisoned traffic, a flood of garbage, silent connections.

    python -m soak.attackers poison --url URL --door URL [--kafka ADDRESS]

``poison`` has the tokens of a service under test and of a device, and sends what nobody can read,
or bear: to the API, and to every topic where there is Kafka. ``flood`` has no token, and asks for
anything; where it gets through a service under test, for paths that do not exist. ``silence``
opens connections and says nothing, or half of a header.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import random
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ldfi.cli.processes import end_with_parent
from ldfi.experiments.streams.stream import Topics
from soak.service import TOKENS

JUNK: Final = 2_000
"""Paths that do not exist, each asked for once."""

SILENT: Final = {"url": 400, "door": 40}
"""Connections to the API, and to the door for halting, that say nothing."""

NEW_SECONDS: Final = 0.5
"""So often connections that were closed are opened again, and garbage is sent to each topic."""

DEEP: Final = b"[" * 20_000
PATHS: Final = ("/n\0x", "/\x1b[2J", "/" + "a/" * 2_000, "/'; touch OOPS #\n")
METRICS: Final = (
    b"",
    b"null",
    b'{"metrics": ' + DEEP,
    b'{"metrics": [{"device": "\\u0000", "trace_id": "\\ud800", "outcome": "success"}]}',
    json.dumps(
        {"metrics": [{"trace_id": "ab" * 16, "device": "d", "duration_ms": 10**400}]}
    ).encode(),
)


def spans_of(trace: bytes, path: str) -> bytes:
    """Return the spans of a good request for this path, as OTLP."""
    body = ExportTraceServiceRequest()
    group = body.resource_spans.add()
    group.resource.attributes.add(key="service.name").value.string_value = "api"
    span = group.scope_spans.add().spans.add(trace_id=trace, span_id=b"\0" * 7 + b"\1", name="GET")
    span.kind, span.start_time_unix_nano = 2, time.time_ns()  # type: ignore[assignment] # SERVER
    span.end_time_unix_nano = span.start_time_unix_nano + 1_000_000
    told = {"http.request.method": "GET", "url.path": path}
    for key, value in told.items():
        span.attributes.add(key=key).value.string_value = value
    return body.SerializeToString()


def poison(url: str, _door: str, kafka: str, prefix: str) -> None:
    """Send what nobody can read, for ever."""
    chance = random.Random(0)
    if kafka:
        threading.Thread(target=_poison_topics, args=(kafka, prefix), daemon=True).start()
    with httpx.Client(base_url=url, timeout=5.0, trust_env=False) as client:
        for what in itertools.cycle((_bodies, _requests)):
            for path, role, body, headers in what(chance):
                headers |= {"Authorization": f"Bearer {TOKENS[role]}"}
                with suppress(httpx.HTTPError):
                    client.post(path, content=body, headers=headers)
                time.sleep(0.02)


Post = tuple[str, str, bytes, dict[str, str]]


def _bodies(chance: random.Random) -> Iterator[Post]:
    kinds = {"Content-Type": "application/x-protobuf"}
    good = spans_of(chance.randbytes(16), "/home")
    for body in (good[:-9], _changed(chance, good), chance.randbytes(200), b"", DEEP):
        yield "/v1/traces", "ingest", body, dict(kinds)
    empty = b"\x12\x00" * 100_000  # spans of two bytes each, as many as there is room for
    bomb = gzip.compress(b"\x0a\xff\xff\xff\x07" + empty * 20)
    yield "/v1/traces", "ingest", bomb, {**kinds, "Content-Encoding": "gzip"}
    yield "/v1/traces", "ingest", b'{"resourceSpans":' + DEEP, {"Content-Type": "application/json"}
    for body in METRICS:
        yield "/api/v1/device-metrics", "devices", body, {"Content-Type": "application/json"}


def _requests(chance: random.Random) -> Iterator[Post]:
    """Yield good requests for paths that no database takes, or no terminal."""
    for path in PATHS:
        trace = chance.randbytes(16)
        headers = {"Content-Type": "application/x-protobuf"}
        yield "/v1/traces", "ingest", spans_of(trace, path), headers
        seen = {"device": f"d{chance.random()}", "trace_id": trace.hex(), "outcome": "success"}
        body = json.dumps({"metrics": [seen]}).encode()
        yield "/api/v1/device-metrics", "devices", body, {"Content-Type": "application/json"}


def _changed(chance: random.Random, body: bytes) -> bytes:
    found = bytearray(body)
    for _ in range(chance.randrange(1, 8)):
        found[chance.randrange(len(found))] = chance.randrange(256)
    return bytes(found)


def _poison_topics(kafka: str, prefix: str) -> None:
    from kafka import KafkaProducer

    topics, chance = Topics(prefix), random.Random(1)
    producer = KafkaProducer(bootstrap_servers=kafka)
    good = spans_of(chance.randbytes(16), "/home")
    while True:
        for topic in (topics.spans, topics.metrics, topics.observations):
            for value in (None, DEEP, b"\xff\xfe", chance.randbytes(300), _changed(chance, good)):
                key = chance.choice([None, b"\0", chance.randbytes(16).hex().encode()])
                producer.send(topic, value, key)
        with suppress(Exception):
            producer.flush(5.0)
        time.sleep(NEW_SECONDS)


def flood(url: str, door: str, _kafka: str, _prefix: str) -> None:
    """Ask for anything, with tokens that are none, from several connections; and for junk."""
    for place in (url, url, door):
        threading.Thread(target=_guess, args=(place,), daemon=True).start()
    headers = {
        "Authorization": f"Bearer {TOKENS['ingest']}",
        "Content-Type": "application/x-protobuf",
    }
    chance, numbers = random.Random(2), itertools.cycle(range(JUNK))
    with httpx.Client(base_url=url, headers=headers, timeout=5.0, trust_env=False) as client:
        while True:
            body = spans_of(chance.randbytes(16), f"/junk{chance.random()}/{next(numbers)}.php")
            with suppress(httpx.HTTPError):
                client.post("/v1/traces", content=body)
            time.sleep(0.005)


def _guess(url: str) -> None:
    asked = (
        ("GET", "/api/v1/status"),
        ("POST", "/api/v1/halt"),
        ("GET", "/api/v1/edge/rules?edge=e&version=&wait=0"),
        ("GET", "/../../etc/passwd"),
        ("POST", "/v1/traces"),
    )
    with httpx.Client(base_url=url, timeout=5.0, trust_env=False) as client:
        for number, (method, path) in enumerate(itertools.cycle(asked)):
            headers = {"Authorization": f"Bearer guess-number-{number}"}
            with suppress(httpx.HTTPError):
                client.request(method, path, headers=headers, content=b"\xff" * 300)
            time.sleep(0.005)


def silence(url: str, door: str, _kafka: str, _prefix: str) -> None:
    """Hold connections that say nothing, and open those again that somebody closes."""
    held: dict[str, list[socket.socket]] = {"url": [], "door": []}
    while True:
        for name, address in (("url", url), ("door", door)):
            held[name] = [each for each in held[name] if not _closed(each)]
            while len(held[name]) < SILENT[name] and (made := _connected(address)):
                held[name].append(made)
        time.sleep(NEW_SECONDS)


def _connected(address: str) -> socket.socket | None:
    where = urlsplit(address)
    try:
        made = socket.create_connection((where.hostname or "", where.port or 0), timeout=0.2)
    except OSError:
        return None
    made.setblocking(False)
    if made.fileno() % 2:
        with suppress(OSError):
            made.send(b"GET /healthz HTTP/1.1\r\nhost: x\r\n")
    return made


def _closed(each: socket.socket) -> bool:
    try:
        gone = each.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        gone = True
    if gone:
        each.close()
    return gone


ATTACKERS: dict[str, Callable[[str, str, str, str], None]] = {
    "poison": poison,
    "flood": flood,
    "silence": silence,
}


def main() -> None:
    """Attack until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m soak.attackers")
    parser.add_argument("attacker", choices=ATTACKERS)
    parser.add_argument("--url", required=True)
    parser.add_argument("--door", required=True)
    parser.add_argument("--kafka", default="", help="the address of a broker")
    parser.add_argument("--prefix", default="ldfi", help="of its topics")
    parser.add_argument("--begin", type=Path, help="wait for this file, once all is ready")
    options = parser.parse_args()
    end_with_parent()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while options.begin is not None and not options.begin.exists():
        time.sleep(0.02)
    ATTACKERS[options.attacker](options.url, options.door, options.kafka, options.prefix)


if __name__ == "__main__":
    main()
