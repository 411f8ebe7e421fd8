"""The tutorial, typed block by block: what begins with nothing, and what wants a past and traffic.
(`make demo`, its first block, is run as it stands by .ci/run.)
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from ldfi.testing.live_service import live_service
from ldfi.testing.programs import Call, Step
from tests.docs.test_site import DOCS, ROOT, blocks
from tests.docs.test_ten_minutes import SERVICE, Shell, answers, taken, until
from tests.kit.service import GIVEN, live_through

pytestmark = pytest.mark.long

PAGE = DOCS / "tutorial.md"
DEMO, LOOK, ANALYZE, SERVE, EXPORT, REPORT, TRY, CAMPAIGN, CERTIFICATE, WEEKLY = blocks(PAGE, "sh")
JAEGER = 16686
RATINGS = "api>http:GET:ratings/titles/*"
BOOT = Call(
    "root",
    (
        Step("critical", (Call("api>http:GET:layout/layout"),)),
        Step("optional", (Call(RATINGS),)),
    ),
)


@contextmanager
def jaeger(traces: bytes) -> Iterator[None]:
    """What answers as Jaeger does, always with the same traces."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            services = self.path.startswith("/api/services")
            self.wfile.write(b'{"data": ["frontend"]}' if services else traces)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", JAEGER), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield
    server.shutdown()
    server.server_close()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    busy = [port for port in (SERVICE, JAEGER) if taken(port)]
    if busy and not os.environ.get("CI"):
        pytest.skip(f"somebody else's: {busy}")
    ours = {name: value for name, value in os.environ.items() if not name.startswith("LDFI_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # What the page installs is here already; pip must find it so, and asks nobody.
    here = {"PATH": path, "PIP_NO_INDEX": "1", "COLUMNS": "200", "NO_PROXY": "127.0.0.1"}
    with Shell(tmp_path, ours | here) as opened:
        yield opened


def typed(shell: Shell, text: str, *, codes: frozenset[int] = frozenset({0})) -> str:
    """Type each command of a block; what they printed."""
    printed = ""
    for command in text.replace("\\\n", " ").strip().splitlines():
        code, said = shell.type(command)
        assert code in codes, (command, code, said, (shell.folder / "stderr").read_text("utf-8"))
        printed += said
    return printed


@pytest.mark.timeout(300)
def test_what_begins_with_nothing_works_as_printed(shell: Shell) -> None:
    shutil.copy(ROOT / "tests" / "data" / "otlp-example.json", shell.folder / "traces.json")
    traces = gzip.decompress((ROOT / "tests" / "data" / "hotrod.jaeger.json.gz").read_bytes())
    *from_files, from_jaeger = ANALYZE.strip().splitlines()

    typed(shell, "\n".join(from_files))
    assert "<html" in (shell.folder / "page.html").read_text("utf-8")
    with jaeger(traces):
        assert "requests" in typed(shell, from_jaeger)

    *before, serve = SERVE.strip().splitlines()
    typed(shell, "\n".join(before))
    assert serve == "ldfi serve"
    shell.type(f"{serve} > serve.log 2>&1 &")
    until(lambda: answers(SERVICE, "/readyz"))
    typed(shell, EXPORT)
    said = typed(shell, REPORT)
    assert json.loads(said)["accepted"] == 1
    assert "1" in shell.type("ldfi status")[1]


@pytest.mark.timeout(400)
def test_what_wants_a_past_and_traffic_works_as_printed(shell: Shell) -> None:
    url = f"sqlite:///{shell.folder / 'x.sqlite3'}"
    live_through(url)
    with live_service({"/boot": BOOT}, database=url, tokens=GIVEN) as service:
        shell.type(f"export LDFI_URL={service.url} LDFI_TOKEN={GIVEN['operator']}")
        with service.client() as client:
            finding = client.get("/api/v1/findings").json()["items"][0]
            until(lambda: reaches_ratings(client))
        typed(shell, LOOK.replace(" ID", f" {finding['id']}"), codes=frozenset({0, 1, 3}))
        check = CERTIFICATE.replace(" ID", f" {finding['campaign_id']}")
        typed(shell, check, codes=frozenset({0, 3}))
        typed(shell, TRY, codes=frozenset({0, 1, 3}))

        shell.type(f"{CAMPAIGN.strip()} > watched 2>&1 &\nwatching=$!")
        watched = shell.folder / "watched"
        until(lambda: watched.exists() and "Campaign" in watched.read_text("utf-8"))
        running = json.loads(shell.type("ldfi campaign list --state running --json")[1])
        for each in running["items"]:
            assert shell.type(f"ldfi campaign stop --reason enough {each['id']}")[0] == 0
        assert shell.type("wait $watching")[0] in {1, 3}
        assert "scheduled" in typed(shell, WEEKLY + "\nldfi campaign list")


def reaches_ratings(client: httpx.Client) -> bool:
    """Whether the class is known with all it relies on, by now."""
    return any(RATINGS in each["support"] for each in client.get("/api/v1/classes").json())


def test_the_demo_is_run_as_it_stands_by_ci() -> None:
    assert DEMO.strip() == "make demo"
    assert "twice make demo" in (ROOT / ".ci" / "run").read_text("utf-8")
