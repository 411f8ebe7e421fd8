"""The conformance test: every implementation passes it, and what does not conform fails."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace

from ldfi import fit
from ldfi.fit import uninstall
from ldfi.testing.conformance.__main__ import main, problems
from ldfi.testing.conformance.checks import HOST_KEYS
from ldfi.testing.conformance.edges import EDGE_CHECKS, it_fails_open
from ldfi.testing.conformance.host import Host, met
from ldfi.testing.live import served
from tests.fit import conformance_host, java
from tests.fit.applications import echo_app
from tests.fit.golang import PROXY, built
from tests.kit import needs
from tests.scenarios.export.proxy import envoy_binary

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
JS = (ROOT / "ldfi" / "fit" / "js" / "index.js").as_uri()


@contextmanager
def listening(words: Sequence[str], folder: Path, **more: str) -> Iterator[str]:
    """A host as a process of its own, which says its port."""
    named = {"FIT_KEYS": HOST_KEYS, "OTEL_SERVICE_NAME": "conformance", "FIT_JS": JS}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **named, **more}
    with subprocess.Popen(
        words, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


def python(folder: Path) -> list[str]:
    return [sys.executable, "-m", "tests.fit.conformance_host"]


def python_wsgi(folder: Path) -> list[str]:
    return [*python(folder), "--wsgi"]


def go(folder: Path) -> list[str]:
    return [str(built("proxy/internal/conformance", folder))]


def proxy(folder: Path) -> list[str]:
    return [*go(folder), "--proxy"]


def node(folder: Path) -> list[str]:
    return [needs.program("node"), (HERE / "js" / "conformance.mjs").as_posix()]


def node_http(folder: Path) -> list[str]:
    return [*node(folder), "--http"]


def java_http_client(folder: Path) -> list[str]:
    return java.host("jdk", "tomcat")


def java_async(folder: Path) -> list[str]:
    return java.host("jdk-async")


def java_url_connection(folder: Path) -> list[str]:
    return java.host("url")


NO_EDGE = (node_http, java_async, java_url_connection)
"""Theirs is that of another host."""


@pytest.mark.timeout(600)  # the agent starts slowly where much else runs, and once for each edge
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(python_wsgi, marks=pytest.mark.servers),
        *(pytest.param(each, marks=pytest.mark.languages) for each in (go, proxy, node)),
        *(pytest.param(each, marks=pytest.mark.languages) for each in (java_http_client, *NO_EDGE)),
    ],
)
def test_every_implementation_conforms(
    words: Callable[[Path], list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with listening(words(tmp_path), ROOT) as url:
        conforms(url, capsys, is_edge=words not in NO_EDGE)


def conforms(url: str, capsys: pytest.CaptureFixture[str], *, is_edge: bool) -> None:
    code = main(["--url", url, "--json"])
    found = json.loads(capsys.readouterr().out)["problems"]
    assert {check: wrong for check, wrong in found.items() if wrong} == {}
    assert code == 0
    assert len(found) >= (28 if is_edge else 11)


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The host in Python, and its edges over ASGI, in this process."""
    provider = conformance_host.provided()
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    for name in ("LDFI_URL", "LDFI_TOKEN", "FIT_HALT", "FIT_HALT_FILE", "FIT_DEVICE"):
        monkeypatch.delenv(name, raising=False)  # so that it is what it was afterwards
    monkeypatch.setenv("FIT_KEYS", HOST_KEYS)
    assert fit.install("conformance")
    with conformance_host.hosted() as url:
        yield url
    uninstall()


def test_python_conforms(in_process: str, capsys: pytest.CaptureFixture[str]) -> None:
    conforms(in_process, capsys, is_edge=True)


@pytest.mark.servers
def test_who_obeys_nothing_does_not_conform(tmp_path: Path) -> None:
    """An implementation without the right key lets every request pass: the checks see that."""
    with (
        listening(python(tmp_path), ROOT, FIT_KEYS="k1:entirely-another-key") as url,
        met(url) as it,
    ):
        found = problems(replace(it, names=frozenset(), is_edge=True))

    assert {check for check, wrong in found.items() if wrong} == {
        "what has expired is void",
        "each kind is seen and proved",
        "delays end",
        "bodies come slowly",
        "control only records",
        "the first calls are counted",
        "requests at once are kept apart",
        "edge: an engineers own context stays",
        "edge: devices fall where the vectors say",
        "edge: what is stamped is what the rule says",
        "edge: lengths are drawn for each request",
        "edge: the allowance is never exceeded",
        "edge: a lease runs out",
        "edge: a file halts it",
        "edge: the service halts it",
        "edge: devices at once are kept apart",
        "edge: devices of both arms are asked for",
        "edge: an allowance is used before anybody is asked for",
        "edge: who a device is is for the operator to say",
    }


@pytest.mark.servers
def test_who_is_wrong_about_itself_does_not_conform(tmp_path: Path) -> None:
    with listening(python(tmp_path), ROOT) as url, met(url) as it:
        found = problems(replace(it, kinds=it.kinds - {"status"}, service="another"))

    assert found["each kind is seen and proved"]
    assert found["contexts are read"] == []


def wrong_with_edges(host: Host) -> dict[str, list[str]]:
    """What is wrong with the edges that a host sets up, by check."""
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda check: [*check(host)], EDGE_CHECKS)
        return {
            check.__name__: wrong for check, wrong in zip(EDGE_CHECKS, found, strict=True) if wrong
        }


@pytest.mark.languages
@pytest.mark.timeout(600)  # an edge is a process that starts slowly
def test_an_edge_in_webflux_conforms() -> None:
    """What it reads and makes fail is what it does around servlets: its edges alone are asked."""
    with listening(java.host("jdk", "webflux"), ROOT) as url, met(url) as host:
        assert host.is_edge
        assert wrong_with_edges(host) == {}


@pytest.mark.languages
def test_an_edge_at_an_envoy_gateway_conforms(tmp_path: Path) -> None:
    """Its processor injects as the proxy's does; of what it adds, what edges do is asked."""
    envoy_binary()
    binary = str(built(PROXY, tmp_path))
    with ExitStack() as started, served(echo_app()) as upstream:

        class Gateways(Host):
            """Sets up edges at gateways."""

            def edge(self, environment: Mapping[str, str]) -> str:
                words = [sys.executable, str(HERE / "gateway.py"), binary, upstream]
                given = {**environment, "OTEL_EXPORTER_OTLP_ENDPOINT": upstream}
                return started.enter_context(listening(words, tmp_path, **given))

        host = Gateways("", "", "", frozenset(), frozenset(), "", "", is_edge=True)
        assert wrong_with_edges(host) == {}


def test_an_edge_that_takes_nothing_out_does_not_conform(tmp_path: Path) -> None:
    class Passing(Host):
        """Its edges pass what they get."""

        def edge(self, environment: Mapping[str, str]) -> str:
            return front

    with served(echo_app()) as front:
        host = Passing("", "", "", frozenset(), frozenset(), "", "", is_edge=True)
        assert "goes on with 'a=b,fit=2." in next(it_fails_open(host))


def test_an_edge_that_waits_for_the_control_plane_does_not_conform() -> None:
    asked: list[str] = []

    async def waiting(scope: Any, receive: Any, send: Any) -> None:
        def ask() -> None:
            with suppress(TimeoutError):
                urllib.request.urlopen(f"{asked[-1]}?edge=e1", timeout=2.5).close()  # noqa: S310

        if scope["type"] == "http":
            await asyncio.to_thread(ask)
        await echo_app()(scope, receive, send)

    class Waiting(Host):
        """Its edges pass nothing on before they have asked."""

        def edge(self, environment: Mapping[str, str]) -> str:
            asked.append(f"{environment['LDFI_URL']}/api/v1/edge/rules")
            return front

    with served(waiting) as front:
        host = Waiting("", "", "", frozenset(), frozenset(), "", "", is_edge=True)
        assert re.search(r"after 2\.\d s$", next(it_fails_open(host)))


def test_where_nobody_answers_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--url", "http://127.0.0.1:1"]) == 4
    assert "nobody answers" in capsys.readouterr().err
