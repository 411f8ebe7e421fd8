"""The edge under each framework's real instrumentation, by what the *next service* is sent.

Put in by hand, and by ``opentelemetry-instrument``: either has its own idea of which context is the
request's, and what counts is what leaves the process.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest

from ldfi.fit import baggage
from ldfi.fit.protocol.context import decode
from ldfi.fit.protocol.keys import Keys
from ldfi.testing.control_plane import ControlPlane

ROOT = Path(__file__).parents[2]
FAULT = "refused@edge>http:GET:elsewhere/x"
REQUESTS = 200
FRAMEWORKS = ("starlette", "fastapi", "flask", "django_wsgi", "django_asgi", "aiohttp")
CHUNKED = ("starlette", "fastapi", "django_asgi", "aiohttp")
"""Those whose servers read chunked bodies."""

pytestmark = pytest.mark.long


class Sent(NamedTuple):
    """What the next service is sent of one request."""

    baggage: str
    sampled: bool

    @property
    def contexts(self) -> list[str]:
        return baggage.values(self.baggage)


class NextService(ThreadingHTTPServer):
    """Remembers by path what it was sent."""

    daemon_threads = True

    def __init__(self) -> None:
        self.sent: dict[str, list[Sent]] = {}
        super().__init__(("127.0.0.1", 0), _Remembering)


class _Remembering(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        of = Sent(
            ",".join(self.headers.get_all("baggage", ())),
            self.headers.get("traceparent", "").endswith("1"),
        )
        assert isinstance(self.server, NextService)
        self.server.sent.setdefault(self.path, []).append(of)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Edge(NamedTuple):
    """A running edge."""

    framework: str
    port: int
    plane: ControlPlane
    next: NextService
    halt: Path

    def ask(self, path: str, device: str, *baggages: str, name: str = "baggage") -> Sent:
        """Send a request; returns what the next service was sent of it."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.putrequest("GET", path)
            connection.putheader("traceparent", f"00-{os.urandom(16).hex()}-{'1' * 16}-00")
            for pair in (("x-device-id", device), *((name, each) for each in baggages)):
                connection.putheader(*pair)
            connection.endheaders()
            assert connection.getresponse().status == 200
        finally:
            connection.close()
        return self.next.sent[path][-1]

    def hold(self) -> None:
        """Wait until it holds the rules in force."""
        self.ask("/hold", "")
        self.plane.until_held(20)


@contextmanager
def running(framework: str, how: str, halt: Path) -> Iterator[Edge]:
    with ExitStack() as stack:
        plane = stack.enter_context(ControlPlane(lease=20))
        service = stack.enter_context(NextService())
        threading.Thread(target=service.serve_forever, args=(0.01,), daemon=True).start()
        stack.callback(service.shutdown)
        onward = f"http://127.0.0.1:{service.server_port}"
        program = [sys.executable, "-m", "tests.fit.framework_host", framework, how, onward]
        if how == "auto":
            program.insert(0, str(Path(sys.executable).with_name("opentelemetry-instrument")))
        none = {f"OTEL_{each}_EXPORTER": "none" for each in ("TRACES", "METRICS", "LOGS")}
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "OTEL_SERVICE_NAME": "edge",
            "OTEL_TRACES_SAMPLER": "fit",
            "OTEL_TRACES_SAMPLER_ARG": "0",
            "NEXT": onward,
            "DJANGO_SETTINGS_MODULE": "tests.fit.django_site",
            "FIT_HALT_FILE": str(halt),
            "OTEL_PROPAGATORS": "tracecontext,baggage",
            **none,
            **plane.environment(),
        }
        process = stack.enter_context(
            subprocess.Popen(
                program, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        )
        stack.callback(process.kill)
        assert process.stdout is not None
        port = process.stdout.readline()
        assert port, "it did not start"
        yield Edge(framework, int(port), plane, service, halt)


@pytest.fixture(scope="module", params=[(f, how) for f in FRAMEWORKS for how in ("auto", "hand")])
def edge(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Edge]:
    framework, how = request.param
    with running(framework, how, tmp_path_factory.mktemp("halt") / "halt") as edge:
        yield edge


def signed(edge: Edge, device: str) -> str:
    return edge.plane.baggage(FAULT, device=device)


def test_a_context_for_another_device_reaches_nobody(edge: Edge) -> None:
    others, caught = signed(edge, "hers"), signed(edge, "")
    written: Sequence[tuple[str, ...]] = (
        (others,),
        (caught,),
        ("a=b", f"{others},c=d"),
        (others, caught),
        (f"c=d,{others.replace('fit', '%66it')};p=q",),
        (f" {others.replace('=', ' = ', 1)}",),
    )
    for number, baggages in enumerate(written):
        for name in ("baggage", "Baggage", "BAGGAGE"):
            for device in ("mine", ""):
                sent = edge.ask(f"/foreign{number}", device, *baggages, name=name)
                assert (sent.contexts, sent.sampled) == ([], False), (baggages, device)
                assert ("c=d" in sent.baggage) == ("c=d" in "".join(baggages))
    own = edge.ask("/own", "hers", others)
    assert (own.contexts, own.sampled) == ([others.removeprefix("fit=")], True)


def test_a_context_in_a_trailer_reaches_nobody(edge: Edge) -> None:
    if edge.framework not in CHUNKED:
        return
    with socket.create_connection(("127.0.0.1", edge.port), 30) as connection:
        connection.sendall(
            b"POST /trailer HTTP/1.1\r\nhost: shop\r\nx-device-id: mine\r\nconnection: close\r\n"
            b"transfer-encoding: chunked\r\ntrailer: baggage\r\n\r\n1\r\nx\r\n0\r\nbaggage: "
            + signed(edge, "hers").encode()
            + b"\r\n\r\n"
        )
        assert b" 200 " in connection.makefile("rb").readline()
    assert edge.next.sent["/trailer"][-1].contexts == []


def test_claimed_requests_arrive_stamped_and_sampled(edge: Edge) -> None:
    edge.plane.disarm()
    experiment = edge.plane.arm(FAULT, on="GET /claimed")
    edge.hold()
    keys = Keys.parse(edge.plane.environment()["FIT_KEYS"])
    foreign = signed(edge, "hers")
    arrived = [edge.ask("/claimed", f"d{n}", *[foreign, "a=b"][n % 2 :]) for n in range(REQUESTS)]
    found = [decode(keys, each, time.time()) for sent in arrived for each in sent.contexts]
    assert {each.experiment for each in found} == {experiment}
    stamped = sum(sent.sampled and len(sent.contexts) == 1 for sent in arrived)
    assert stamped >= 0.995 * REQUESTS
    assert all(sent.baggage.endswith("a=b") for sent in arrived)
    other = edge.ask("/other", "d1", "a=b")
    assert (other.baggage, other.sampled) == ("a=b", False)


def test_a_halted_edge_stamps_nothing_and_strips_as_ever(edge: Edge) -> None:
    edge.plane.disarm()
    edge.plane.arm(FAULT, on="GET /halted")
    edge.hold()
    assert edge.ask("/halted", "d1").contexts
    edge.halt.touch()
    try:
        time.sleep(0.3)  # it looks for the file four times a second
        sent = [edge.ask("/halted", f"d{n}", signed(edge, "hers")) for n in range(20)]
    finally:
        edge.halt.unlink()
    assert [each for each in sent if each.contexts] == []


@pytest.mark.parametrize("how", ["auto", "hand"])
def test_aiohttp_behind_an_edge_obeys_its_own_requests_context(how: str, tmp_path: Path) -> None:
    with running("aiohttp_inside", how, tmp_path / "halt") as inside:
        elsewhere = signed(inside, "d1")
        onward = inside.ask("/onward", "d1", f"a=b,{elsewhere}")
        assert (onward.contexts, onward.sampled) == ([elsewhere.removeprefix("fit=")], True)

        fault = f"error@edge>http:GET:127.0.0.1:{inside.next.server_port}/here"
        aimed = inside.plane.baggage(fault, device="d1")
        connection = HTTPConnection("127.0.0.1", inside.port, timeout=30)  # one for all
        for sent, asked in ((aimed, 0), ("", 1), ("a=b", 2), (f"{aimed},{aimed}", 3), (aimed, 3)):
            connection.request("GET", "/here", headers={"baggage": sent} if sent else {})
            connection.getresponse().read()
            assert len(inside.next.sent.get("/here", ())) == asked, sent
        connection.close()
