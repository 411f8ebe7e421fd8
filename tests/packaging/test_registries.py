"""The Go modules, taken from a registry and from a checkout by a service that has older versions of
what they work with and nothing else of ours. Its calls fail when they are told to.

The registry is that of ``deploy/release``; what a service needs besides comes from the registries
that each tool is set up with.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from deploy.release import registries
from deploy.release.version import ROOT, version
from ldfi.fit.protocol.context import encode
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.keys import Keys
from tests.kit import needs

pytestmark = pytest.mark.long

HOSTS = Path(__file__).with_name("hosts")
KEYS = "k1:0123456789abcdef"

Registry = Callable[[str], Path]
"""A language → the folder of its registry, made once."""


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    folder = tmp_path_factory.mktemp("registries")

    def made(language: str) -> Path:
        if not (folder / language).exists():
            registries.LANGUAGES[language](folder / language)
        return folder / language

    return made


class Fine(BaseHTTPRequestHandler):
    """Another service, that answers."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def upstream() -> Iterator[str]:
    """The host and port of a service that calls can reach."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Fine) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def host(words: Sequence[str], upstream: str, folder: Path) -> Iterator[int]:
    """A service that calls the other one, at this port."""
    given = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
        "OTEL_SERVICE_NAME": "host",
        "UPSTREAM": f"http://{upstream}/titles/17",
        "FIT_KEYS": KEYS,
    }
    with (
        (folder / "said.txt").open("w") as log,
        subprocess.Popen(
            words, cwd=folder, env=given, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        assert process.stdout is not None
        try:
            said = process.stdout.readline().strip()
            assert said.isdigit(), said + (folder / "said.txt").read_text()
            yield int(said)
        finally:
            process.kill()


def status(port: int, upstream: str, *faults: str) -> str:
    """What the service got of the other one, under these faults."""
    point = f"host>http:GET:{upstream}/titles/*"
    context = encode(
        Keys.parse(KEYS), "e1", "treatment", int(time.time()) + 60,
        [Fault(point, each) for each in faults],
    )  # fmt: skip
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", "/", headers={"baggage": f"fit={context}"} if faults else {})
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def obeys(words: Sequence[str], upstream: str, folder: Path) -> None:
    """Assert that its call fails when a context says so, and else does not."""
    with host(words, upstream, folder) as port:
        assert status(port, upstream) == "200"
        assert status(port, upstream, "status:503") == "503"


def done(*words: str, folder: Path, **environment: str) -> str:
    given = {**os.environ, **environment}
    said = subprocess.run(
        words, cwd=folder, env=given, capture_output=True, text=True, check=False, timeout=600
    )
    assert said.returncode == 0, said.stdout + said.stderr
    return said.stdout


@pytest.mark.parametrize("source", ["checkout", "registry"])
def test_a_service_in_go_keeps_its_versions(
    source: str, registry: Registry, upstream: str, tmp_path: Path
) -> None:
    go = needs.program("go")
    shutil.copy(HOSTS / "main.go", tmp_path)
    shutil.copy(HOSTS / "go.mod.txt", tmp_path / "go.mod")
    given = {"GOFLAGS": "-mod=mod", "GONOSUMDB": "github.com/ldfi-dev/*"}
    if source == "checkout":
        link = f"{registries.GO}={ROOT / 'fit' / 'go'}"
        needed = f"{registries.GO}@v0.0.0"
        done(go, "mod", "edit", "-require", needed, "-replace", link, folder=tmp_path)
    else:
        given |= _only_now(go, registry("go"), tmp_path)
        done(go, "get", f"{registries.GO}@v{version()}", folder=tmp_path, **given)
    done(go, "mod", "tidy", folder=tmp_path, **given)
    done(go, "build", "-o", "host", ".", folder=tmp_path, **given)
    asked = (HOSTS / "go.mod.txt").read_text().split("(")[1].split()[:-1]
    taken = done(go, "list", "-m", "all", folder=tmp_path, **given)
    assert len(asked) == 8
    assert {f"{name} {at}" for name, at in zip(asked[::2], asked[1::2], strict=True)} <= set(
        taken.splitlines()
    )
    assert "go-control-plane/envoy" not in taken
    obeys(["./host"], upstream, tmp_path)


def test_the_proxy_is_installed_from_a_registry(registry: Registry, tmp_path: Path) -> None:
    go = needs.program("go")
    given = {"GONOSUMDB": "github.com/ldfi-dev/*", "GOBIN": str(tmp_path)}
    given |= _only_now(go, registry("go"), tmp_path)
    program = f"{registries.GO}/proxy/cmd/ldfi-proxy@v{version()}"
    done(go, "install", program, folder=tmp_path, **given)
    said = subprocess.run(
        [tmp_path / "ldfi-proxy", "reverse", "-h"], check=False, capture_output=True, text=True
    )
    assert "-upstream" in said.stderr + said.stdout


def _only_now(go: str, folder: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of a machine that has never taken this version of ours before: what others
    publish is taken from Go's own cache, which is a registry as well."""
    cache, proxies = done(go, "env", "GOMODCACHE", "GOPROXY", folder=tmp_path).split()
    kept = (Path(cache) / "cache" / "download").as_uri()
    return {
        "GOMODCACHE": str(tmp_path / "cache"),
        "GOFLAGS": "-mod=mod -modcacherw",
        "GOPROXY": f"{folder.as_uri()},{kept},{proxies}",
    }
