"""Java: calls have one name, in the process and in the lineage; an edge marks what comes in."""

from __future__ import annotations

import json
import os
import socket
import socketserver
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from ldfi.fit.protocol.keys import Keys
from ldfi.lineage.readers.formats import read_value
from ldfi.testing.conformance.checks import HOST_KEYS, signed
from ldfi.testing.conformance.front import Front, eventually
from ldfi.testing.conformance.host import ask, met
from ldfi.testing.control_plane import ControlPlane
from tests.fit import java
from tests.fit.test_conformance import listening
from tests.kit.spans import document, in_json

pytestmark = pytest.mark.languages

ROOT = Path(__file__).parents[2]


def named(call: dict[str, str], service: str) -> str | None:
    """The point of a call by what was exported of it, less what ``fit`` itself has written."""
    attributes = {name: value for name, value in call.items() if not name.startswith((".", "fit."))}
    span: dict[str, Any] = {
        "traceId": call[".trace"],
        "spanId": "1" * 16,
        "name": call[".name"],
        "kind": 3,
        "startTimeUnixNano": call[".began"],
        "endTimeUnixNano": call[".began"],
        "attributes": in_json(attributes),
    }
    (read,) = read_value(document(span, service=service)).spans
    return read.operation.point


@pytest.mark.parametrize("client", ["jdk", "jdk-async", "url"])
def test_a_call_has_one_name_at_both_ends(client: str) -> None:
    with listening(java.host(client), ROOT) as url, met(url) as it:
        it.run("")
        it.run(signed(it, "status:418"))
        it.run(signed(it, "refused", arm="control"))
        time.sleep(0.2)  # the span of a future ends after who waits for it goes on
        calls = ask(f"{url}/calls")
    assert len(calls) == 3
    assert {named(call, it.service) for call in calls} == {it.point()}
    assert [call.get("fit.point") for call in calls] == [None, it.point(), it.point()]


NOBODY: Any = None
"""Contexts are signed for a point that is named, and for no host."""


@contextmanager
def edge(agent: str, **more: str) -> Iterator[Front]:
    """A servlet that is an edge, and whose own sampler keeps nothing."""
    told = {"LDFI_EDGE": "true", "OTEL_TRACES_SAMPLER": "always_off", **more}
    words = java.program("Front", "tomcat", agent=agent)
    with listening(words, ROOT, **told) as url:
        yield Front(url, Keys.parse(HOST_KEYS))


def ended(front: Front) -> list[dict[str, str]]:
    """The spans that were recorded there of requests like those of :meth:`Front.ask`."""
    found = ask(f"{front.url}/spans")
    return [each for each in found if each.get("url.path", "").startswith("/titles/")]


@pytest.mark.timeout(300)  # the agent starts slowly where much else runs
@pytest.mark.parametrize("agent", [java.OLDEST, java.NEWEST])
def test_an_edge_has_its_requests_sampled_and_marked(agent: str) -> None:
    with (
        ControlPlane() as plane,
        edge(agent, LDFI_URL=plane.url, LDFI_TOKEN=plane.token, FIT_FEATURES="baggage.plan") as at,
    ):
        experiment = plane.arm("status:503@api>http:GET:ratings/", on="GET /titles/17", members=1)
        at.hold(plane)
        assert at.onward("", "/titles/17", "plan=gold") == "plan=gold"
        assert ended(at) == []
        assert at.ask("d1", "/titles/17", "plan=gold") is not None
        assert eventually(lambda: len(ended(at)) == 1)  # a span ends after its answer has come
        assert at.ask("d1", "/titles/17", "plan=gold") is not None
        foreign = signed(NOBODY, "refused", point="p").removeprefix("fit=")
        assert at.onward("d2", "/titles/17", f"fit={foreign}") == ""
        assert eventually(lambda: len(ended(at)) >= 2)
        first, second = ended(at)  # what is foreign keeps no trace

    for span in (first, second):
        assert (span[".kind"], span["fit.edge"], span["fit.experiment"], span["fit.arm"]) == (
            *("SERVER", "true", experiment, "treatment"),
        )
        assert span["fit.feature.baggage.plan"] == "gold"
    assert "fit.again" not in first
    assert second["fit.again"] == "true"


@pytest.mark.timeout(300)
def test_an_edge_without_keys_takes_contexts_out_and_no_edge_leaves_them_alone() -> None:
    foreign = signed(NOBODY, "refused", point="p")
    with edge(java.NEWEST, FIT_KEYS="", OTEL_TRACES_SAMPLER="always_on") as at:
        assert at.onward("d1", "/titles/17", f"a=b,{foreign}") == "a=b"
        assert "fit.edge" not in ended(at)[0]
    with edge(java.NEWEST, LDFI_EDGE="false") as at:
        assert at.onward("d1", "/titles/17", foreign) == foreign


STATEMENTS = [
    *("insert into marks select 1, n from marks", "update marks set n = 3 where id = 1"),
    "/* why */ select * from marks where id = 17",
    *("(select n from marks) union (select id from marks)", "select 1", "{call abs(1)}"),
    "delete from marks",
]


@contextmanager
def telling(program: str, conventions: str) -> Iterator[Callable[..., dict[str, str]]]:
    """Have a program under the agent do what it is told, and be told its span of it."""
    told = {"FIT_KEYS": HOST_KEYS, "OTEL_SERVICE_NAME": "shop"}
    environment = {**os.environ, **told, "OTEL_SEMCONV_STABILITY_OPT_IN": conventions}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(java.program(program), env=environment, **pipes) as process:
        assert process.stdin is not None and process.stdout is not None
        asked, answers = process.stdin, process.stdout

        def tell(context: str = "", **what: str | int) -> dict[str, str]:
            asked.write(json.dumps(what | {"context": context.removeprefix("fit=")}) + "\n")
            asked.flush()
            span: dict[str, str] = json.loads(answers.readline())
            return span

        yield tell
        asked.close()


@pytest.mark.parametrize("conventions", ["", "database"])
def test_a_statement_has_one_name_at_both_ends(conventions: str) -> None:
    names = set()
    batches = [(STATEMENTS[-1], size) for size in (1, 2)]
    with telling("Statements", conventions) as execute:
        for text, batch in [(text, 0) for text in STATEMENTS] + batches:
            name = named(execute(text=text, batch=batch), "shop")
            assert name is not None
            context = signed(NOBODY, "delay", point=name, arm="control")
            assert execute(context, text=text, batch=batch).get("fit.point") == name
            names.add(name.partition(">")[2].partition(":")[2].partition(":")[0])
    assert {"INSERT", "UPDATE", "SELECT", "DELETE"} <= names


@pytest.fixture
def silent() -> Iterator[int]:
    """A port at which somebody listens and says nothing but goodbye."""
    with socket.create_server(("127.0.0.1", 0)) as listening_at:

        def goodbye() -> None:
            with suppress(OSError):
                while True:
                    listening_at.accept()[0].close()

        threading.Thread(target=goodbye, daemon=True).start()
        yield listening_at.getsockname()[1]
        listening_at.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def empty() -> Iterator[int]:
    """A port at which a Redis says that there is nothing."""

    class Nothing(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            while self.request.recv(4096):
                self.request.sendall(b"$-1\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Nothing) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_calls_of_other_libraries_have_one_name_at_both_ends(silent: int, empty: int) -> None:
    at = f"127.0.0.1:{silent}"
    points = {
        "apache4": f"shop>http:GET:{at}/titles/*",
        "grpc": f"shop>rpc:Get:{at}/shop.Prices",
        "jedis": f"shop>db:GET:{at}",
        "lettuce": f"shop>db:GET:127.0.0.1:{empty}",
        "r2dbc": "shop>db:SELECT:other/dual",
    }
    with telling("Calls", "") as call:
        for library, point in points.items():
            port = empty if library == "lettuce" else silent
            assert named(call(by=library, port=port), "shop") == point
            context = signed(NOBODY, "delay", point=point, arm="control")
            assert call(context, by=library, port=port).get("fit.point") == point
