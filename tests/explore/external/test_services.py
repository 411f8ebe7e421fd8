"""Services are started, waited for, told what they need, and stopped; what runs is used."""

from __future__ import annotations

import http.client
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ldfi.cli.ports import free_port
from ldfi.explore.external.services import Service, ServiceFailed, Services

ANSWERS = """
import os
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        told = ("OTEL_SERVICE_NAME", "TOLD", "OWN")
        said = " ".join(os.environ[name] for name in told).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"""


def service(name: str = "one", code: str = ANSWERS, health: str = "/") -> Service:
    return Service(name, (sys.executable, "-c", code), free_port(), health, {"OWN": "own"})


def said(of: Service) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", of.port, timeout=5)
    connection.request("GET", "/")
    return connection.getresponse().read().decode()


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    made = Services({"TOLD": "told"}, tmp_path / "logs")
    yield made
    made.close()


def test_they_are_told_what_they_need_and_stopped_in_the_end(services: Services) -> None:
    one, two = service(), service("two", health="")
    services.start(one, two)

    assert said(one) == "one told own"
    assert services.names == {f"127.0.0.1:{each.port}": each.name for each in (one, two)}
    services.close()
    with pytest.raises(ConnectionRefusedError):
        said(one)


def test_one_that_was_killed_is_started_again(services: Services) -> None:
    one = service()
    services.start(one)
    services.process("one").kill()
    services.process("one").wait()

    services.start(one)

    assert said(one) == "one told own"


def test_what_runs_already_is_used_and_goes_on(services: Services, tmp_path: Path) -> None:
    one = service()
    services.start(one)
    others = Services({}, tmp_path / "others")
    others.start(one)
    others.close()

    assert others.found == [one]
    assert said(one) == "one told own"


def test_one_that_does_not_come_up_shows_the_end_of_its_log(services: Services) -> None:
    with pytest.raises(ServiceFailed, match=r"(?s)ended with code 3.*no database"):
        services.start(service(code="print('no database'); raise SystemExit(3)"))
    with pytest.raises(ServiceFailed, match="cannot be started"):
        services.start(Service("none", ["./no-such-program"], 1))


def test_one_that_never_answers_is_given_up(tmp_path: Path) -> None:
    services = Services({}, tmp_path, seconds=0.3)
    try:
        with pytest.raises(ServiceFailed, match=r"does not answer at .* after 0\.3 s"):
            services.start(service(code="import time; time.sleep(60)"))
    finally:
        services.close()
