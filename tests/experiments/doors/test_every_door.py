"""Every door, fuzzed: no answer of 5xx, no traceback, memory within bounds, the good get through.

What is right for a door is changed, cut and put together anew, and sent: to the real service as a
process, through the edge, through the workers behind Kafka. The API's own operations, as its
document has them, are fuzzed in ``tests/experiments/api/test_openapi_requests.py``, files of YAML
by drawn shapes in ``tests/scenarios/test_document.py``.

In CI a second or two for each door, alike each time. ``FUZZ_DOORS=100`` makes it a hundred seconds,
others each time.
"""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import logging
import os
import random
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import pytest
import typer
import yaml

from ldfi import fit
from ldfi.cli.ports import free_port
from ldfi.errors import Invalid
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store.database import Database
from ldfi.experiments.streams.intake import Intake
from ldfi.experiments.streams.memory import MemoryStream
from ldfi.experiments.streams.partition import Patience
from ldfi.experiments.streams.stream import Topics
from ldfi.experiments.streams.worker import Worker
from ldfi.fit import baggage
from ldfi.fit.protocol.context import decode, encode
from ldfi.fit.protocol.errors import ContextError
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.runtime import Runtime, activate
from soak.service import TOKENS, Service
from tests.experiments.doors.mutations import mutated
from tests.experiments.streams.test_wire import RECORDED
from tests.fit.applications import KEYS
from tests.fit.edges import Held, a_rule
from tests.kit.spans import document
from tests.kit.streams import produce, request
from tests.scenarios.test_document import HOSTILE, READERS

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc"),
]

SECONDS: Final = float(os.environ.get("FUZZ_DOORS", "0"))
SHORT: Final = 1.5
GROWTH: Final = 300
"""Megabytes by which a process may grow while it is fuzzed: what it holds of traces is bounded."""

GOOD_SPANS: Final = [each.value for each in request("ab" * 16) if each.half == "spans"]
GOOD_METRIC: Final = request("ab" * 16)[-1].value
SPAN: Final = {"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "GET", "kind": 2}
OTLP_JSON: Final = json.dumps(document(SPAN, service="a")).encode()
METRIC: Final = {"device": "d", "trace_id": "ab" * 16, "outcome": "success", "duration_ms": 5}
METRICS: Final = json.dumps({"metrics": [METRIC]}).encode()


def drawn(door: str) -> Iterator[random.Random]:
    """Chances for as long as this door is fuzzed. At least a hundred, however slow the machine."""
    chance = random.Random(None if SECONDS else door)
    end, tried = time.monotonic() + (SECONDS or SHORT), 0
    while time.monotonic() < end or tried < 100:
        tried += 1
        yield chance
    print(f"{door}: {tried} tried")  # noqa: T201 - for the figures of the long form


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The real service, in a process of its own. Whatever was sent, it has logged no traceback."""
    folder = tmp_path_factory.mktemp("serving")
    extra = {"LDFI_HALT_PORT": f"{free_port()}"}
    service = Service(f"sqlite:///{folder / 'ldfi.sqlite3'}", folder, extra=extra)
    service.start()
    try:
        service.ready()
        yield service
        service.check()
        assert "Traceback" not in service.log, service.log[-5000:]
    finally:
        service.stop()


def megabytes(pid: int) -> float:
    """What a process holds in memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


class Tracebacks(logging.Handler):
    """Keeps what was logged with a traceback, and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.logged: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.logged.append(self.format(record))


@contextmanager
def bounded(kept: Callable[[], float] = lambda: 0.0) -> Iterator[None]:
    """See that this process logs no traceback and does not grow, but for the megabytes that the
    test itself has ``kept`` by the end. Meanwhile pytest, which keeps every word, hears nothing."""
    root, tracebacks = logging.getLogger(), Tracebacks()
    with pytest.MonkeyPatch.context() as patch, ExitStack() as after:
        patch.setattr(root, "handlers", [tracebacks])
        after.callback(root.setLevel, root.level)
        root.setLevel(logging.DEBUG)
        gc.collect()
        before = megabytes(os.getpid())
        yield
        gc.collect()
        grown = megabytes(os.getpid()) - before
    print(f"grown by {grown:.0f} MB, {kept():.0f} of them kept here")  # noqa: T201 - as above
    assert grown - kept() < GROWTH
    assert not tracebacks.logged, tracebacks.logged[-1]


PROTOBUF, JSON = "application/x-protobuf", "application/json"
BODIES: Final = {
    "OTLP as protobuf": ("/v1/traces", "ingest", PROTOBUF, GOOD_SPANS),
    "OTLP as JSON": ("/v1/traces", "ingest", JSON, [OTLP_JSON]),
    "device metrics": ("/api/v1/device-metrics", "devices", JSON, [METRICS]),
    "campaigns": ("/api/v1/campaigns", "operator", JSON, [b'{"name": "x", "kinds": ["error"]}']),
}


CHUNKED: Final = "transfer-encoding: chunked"


@pytest.mark.timeout(SECONDS + 300)
@pytest.mark.parametrize("door", BODIES)
def test_whatever_is_sent_is_taken_or_refused(door: str, serving: Service) -> None:
    path, role, kind, seeds = BODIES[door]
    headers = {"Authorization": f"Bearer {TOKENS[role]}", "Content-Type": kind}
    said = Counter[int]()
    with httpx.Client(base_url=serving.url, headers=headers, timeout=30, trust_env=False) as client:
        before = megabytes(serving.pid)
        for chance in drawn(door):
            body = mutated(chance, seeds)
            squeezed = chance.random() < 0.2
            more = {"Content-Encoding": "gzip"} if squeezed else {}
            sent = mutated(chance, [gzip.compress(body)]) if squeezed else body
            said[client.post(path, content=sent, headers=more).status_code] += 1
        # Then none of it was too much for the service, and what is right gets through
        assert not [status for status in said if status >= 500], said
        assert len(said) > 1, "everything was answered alike: nothing was fuzzed"
        assert client.post(path, content=seeds[0]).status_code in (200, 201, 202, 429)
    assert megabytes(serving.pid) - before < GROWTH


@pytest.mark.timeout(SECONDS + 300)
@pytest.mark.parametrize("door", ["port", "halt_port"])
def test_whatever_comes_over_a_socket_ends_or_is_answered(door: str, serving: Service) -> None:
    # Given requests that edges and people make, at the main door or at that for halts
    url = serving.url if door == "port" else f"http://x:{serving.extra['LDFI_HALT_PORT']}"
    where = ("127.0.0.1", urlsplit(url).port or 0)
    lines = [
        f"{start} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKENS[role]}\r\n"
        f"{more}\r\n{body}".encode()
        for start, role, more, body in (
            ("GET /api/v1/edge/rules?edge=e&version=&wait=0", "edge", "baggage: fit=1.k\r\n", ""),
            ("GET /api/v1/status", "operator", "if-none-match: x\r\n", ""),
            ("POST /api/v1/halt", "ingest", "content-length: 14\r\n", '{"reason":"x"}'),
            ("POST /v1/traces", "ingest", f"{CHUNKED}\r\n", "3\r\nabc\r\n0\r\n\r\n"),
        )
    ]
    # When they are changed, and sent
    for chance in drawn(door):
        with socket.create_connection(where, timeout=30) as line, suppress(ConnectionError):
            line.sendall(mutated(chance, lines))
            line.shutdown(socket.SHUT_WR)
            assert not line.recv(64).startswith(b"HTTP/1.1 5")
    # Then the service is well
    assert httpx.get(f"{serving.url}/readyz", timeout=30, trust_env=False).is_success


CONTEXT: Final = encode(KEYS, "e1", "treatment", 2_000_000_000, [Fault("a>b", "error")])
HEADERS: Final = [
    f"fit={CONTEXT}".encode(),
    f"a=1;p=%20x,%66it={CONTEXT},b=2".encode(),
    b"fit=2.k.e.t.99999999999.~~.AAAAAAAAAAAAAAAAAAAAAA, fit = x;y",
    b"tenant=blue,other=%C3%A4",
]


@pytest.fixture
def installed() -> Iterator[None]:
    """``fit`` with a key."""
    activate(Runtime("api", KEYS))
    yield
    activate(None)


@pytest.mark.usefixtures("installed")
@pytest.mark.timeout(SECONDS + 300)
def test_no_baggage_breaks_an_edge_or_gets_a_context_past_it() -> None:
    seen: list[list[bytes]] = []

    async def behind(scope: Any, _receive: Any, _send: Any) -> None:
        seen.append([value for name, value in scope["headers"] if name.lower() == b"baggage"])

    edge = fit.EdgeMiddleware(behind, Held(a_rule(), seconds=SECONDS + 300))
    with bounded():
        for chance in drawn("baggage"):
            headers = [(b"x-device-id", chance.randbytes(8))]
            headers += [
                (b"baggage", mutated(chance, HEADERS)) for _ in range(chance.randrange(1, 4))
            ]
            scope = {"type": "http", "method": "GET", "path": "/boot", "headers": headers}
            asyncio.run(edge(scope, None, None))  # type: ignore[arg-type] # nobody reads or answers
            # Then what goes on holds no context but one that the edge itself has signed
            onward = b",".join(seen.pop()).decode("latin-1")
            for stamp in baggage.values(onward):
                assert decode(KEYS, stamp, time.time()).experiment == a_rule().experiment
            # And a service that is sent what came in reads it, or says why not
            for name, value in headers[1:]:
                with suppress(ContextError):
                    decode(KEYS, value.decode("latin-1").removeprefix("fit="), time.time())
                assert name == b"baggage"


@pytest.mark.timeout(SECONDS + 300)
def test_no_message_stops_a_worker_or_the_leader(tmp_path: Path) -> None:
    stream, topics = MemoryStream(), Topics("test")
    stream.ensure(topics.partitions(2))
    worker = Worker(stream, topics, Patience(quiet=0.05, max_age=0.5, other_half=0.3))
    db = Database(f"sqlite:///{tmp_path / 'ldfi.sqlite3'}")
    engine = Engine(db, now=time.time())
    intake, producer = Intake(stream, topics, db, engine), stream.producer()
    places = {
        topics.spans: [*GOOD_SPANS, OTLP_JSON],
        topics.metrics: [GOOD_METRIC],
        topics.observations: [RECORDED],
    }

    def step() -> None:
        producer.flush()
        worker.step()
        intake.take(intake.read(0.0), time.time())
        engine.tick(time.time())

    # When messages are changed, and some are none at all
    octets = 0  # the stream forgets nothing
    with bounded(lambda: octets / 2**20):
        for chance in drawn("Kafka"):
            for topic, seeds in places.items():
                value = None if chance.random() < 0.02 else mutated(chance, seeds)
                key = chance.choice([b"", None, mutated(chance, [b"ab" * 16]), b"ab" * 16])
                producer.send(topic, key, value)  # type: ignore[arg-type] # others write otherwise
                octets += sum(map(sys.getsizeof, (key, value))) + 500
            step()
    # Then a request behind them is counted
    before = sum(known.traffic.good for known in engine.catalogue.classes.values())
    for number in range(1, 31):
        produce(stream, topics, request(f"{number:032x}", "/after"))
    end, good = time.monotonic() + 60, before
    while good < before + 30 and time.monotonic() < end:
        step()
        good = sum(known.traffic.good for known in engine.catalogue.classes.values())
    assert good >= before + 30
    assert worker.seen.dead_letters > 0
    assert intake.dropped["observation_unreadable"] > 0
    intake.close()
    worker.close()
    db.close()


NAMED: Final = {"version": 1, "id": "a", "title": "t", "request_class": {"name": "GET /boot"}}
ASKED: Final = {"request": {"method": "GET", "path": "/boot", "headers": {"accept": "x"}}}
TRIED: Final = {"faults": ["error@api>http:GET:ratings/"]}
EXPECTED: Final = {"expect": {"status": [200], "body_contains": "x"}}
SCENARIO: Final = yaml.safe_dump({**NAMED, **ASKED, **TRIED, **EXPECTED}).encode()
FILES: Final = [SCENARIO, *(text.encode("utf-8", "surrogatepass") for text in HOSTILE.values())]


@pytest.mark.timeout(SECONDS + 300)
def test_no_file_fails_otherwise_than_in_words(tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    with bounded():
        for chance in drawn("YAML"):
            file.write_bytes(mutated(chance, FILES)[:20_000])
            reader = chance.choice(sorted(READERS))
            try:
                READERS[reader](file)
            except (Invalid, typer.BadParameter) as refused:
                assert str(refused)
