"""The reader in JavaScript: its own tests, and a request from the edge in Python through Node."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ldfi import fit
from ldfi.fit.faults import Fault
from ldfi.testing.serving import served
from tests.fit.applications import echo_app
from tests.fit.edges import ANY, Held, a_rule

pytestmark = pytest.mark.languages

ROOT = Path(__file__).parents[2]
JS = ROOT / "ldfi" / "fit" / "js"
HERE = Path(__file__).parent / "js"


def missing(what: str) -> None:
    """Skip on a laptop, fail in CI."""
    if os.environ.get("CI"):
        pytest.fail(f"{what}, and CI has to run this test")
    pytest.skip(what)


@pytest.fixture
def node() -> str:
    found = shutil.which("node")
    if found is None:
        missing("node is not installed")
    version = subprocess.run([str(found), "--version"], capture_output=True, text=True, check=True)
    major, minor = version.stdout.strip().lstrip("v").split(".")[:2]
    if (int(major), int(minor)) < (20, 19):
        missing(f"node is {version.stdout.strip()}, not 20.19 or newer")
    return str(found)


def run_tests(node: str, files: list[Path], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FIT_")}
    return subprocess.run(
        [node, "--test", *map(str, files)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_the_readers_own_tests_pass(node: str) -> None:
    files = sorted((JS / "test").glob("*.test.js"))

    done = run_tests(node, files, JS)

    assert len(files) == 8
    assert done.returncode == 0, done.stdout + done.stderr


def npm() -> str:
    found = shutil.which("npm")
    if found is None:
        missing("npm is not installed")
    return str(found)


def test_what_is_published_is_the_reader_and_nothing_else() -> None:
    words = [npm(), "pack", "--dry-run", "--json", "--offline"]
    done = subprocess.run(words, cwd=JS, capture_output=True, text=True, timeout=60, check=True)
    answer = json.loads(done.stdout)  # a list, or from npm 11 on by name
    (packed,) = answer.values() if isinstance(answer, dict) else answer

    code = {path.name for ending in ("*.js", "*.d.ts") for path in JS.glob(ending)}
    assert {each["path"] for each in packed["files"]} == code | {
        "LICENSE",
        "README.md",
        "package.json",
    }
    assert packed["id"] == f"ldfi-fit@{project()['version']}"
    assert (JS / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_package_says_the_same_as_the_project() -> None:
    package = json.loads((JS / "package.json").read_text(encoding="utf-8"))
    source = project()["urls"]["Source"]
    assert package["version"] == project()["version"]
    assert package["repository"]["url"] == f"git+{source}.git"
    assert package["bugs"] == project()["urls"]["Issues"]
    assert package["homepage"].startswith(source)
    assert source in (JS / "README.md").read_text(encoding="utf-8")
    assert "private" not in package


def project() -> dict[str, Any]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    described: dict[str, Any] = tomllib.loads(text)["project"]
    return described


@contextmanager
def node_service(node: str, upstream: str) -> Iterator[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "FIT_JS": (JS / "index.js").as_uri(),
        "FIT_KEYS": "test:0123456789abcdef",
        "OTEL_SERVICE_NAME": "node",
        "UPSTREAM": upstream,
    }
    with subprocess.Popen(
        [node, str(HERE / "service.mjs")], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


def proxy_to(url: str) -> Starlette:
    """What stands behind the edge: it passes requests on, with the baggage they carry."""

    async def forward(request: Request) -> Response:
        baggage = {k: v for k, v in request.headers.items() if k == "baggage"}
        async with httpx.AsyncClient(trust_env=False) as http:
            return PlainTextResponse((await http.get(url, headers=baggage)).text)

    return Starlette(routes=[Route("/{rest:path}", forward)])


@pytest.mark.usefixtures("installed")
def test_what_the_edge_stamps_fails_in_node_and_nothing_else_does(node: str) -> None:
    def ask(edge: str, device: str, **headers: str) -> str:
        headers = {"x-device-id": device, **headers}
        return httpx.get(f"{edge}/boot", headers=headers, trust_env=False, timeout=10).text

    with served(echo_app()) as upstream, node_service(node, upstream) as service:
        fault = Fault(f"node>http:GET:{upstream.removeprefix('http://')}/titles/*", "error")
        half = a_rule(treatment=0.4, control=0.4, predicate=ANY, faults=(fault,))
        with served(fit.EdgeMiddleware(proxy_to(service), Held(half, seconds=60))) as edge:
            answers = {device: ask(edge, device) for device in map(str, range(60))}
            unnamed = ask(
                edge, "", baggage="a=b,fit=1.test.e1.t.9999999999..AAAAAAAAAAAAAAAAAAAAAA"
            )

    arms = {device: half.arm_of(device) for device in answers}
    assert set(arms.values()) == {"treatment", "control", None}
    for device, answer in answers.items():
        failed = answer == "503 fault injected"
        assert failed == (arms[device] == "treatment"), (device, arms[device], answer)
    assert unnamed.startswith("200")


def test_with_the_real_express_and_the_real_opentelemetry(node: str, tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    packages = ["express@5", "@opentelemetry/api@1", "@opentelemetry/sdk-trace-base@2"]
    options = ["--prefer-offline", "--no-audit", "--no-fund", "--no-package-lock"]
    try:
        subprocess.run(
            [npm(), "install", *options, *packages],
            cwd=tmp_path,
            capture_output=True,
            timeout=60,
            check=True,
        )
    except subprocess.SubprocessError:
        missing("npm cannot install Express and OpenTelemetry here")
    here = tmp_path / "node_modules" / "ldfi-fit"
    shutil.copytree(JS, here, ignore=shutil.ignore_patterns("test", "node_modules"))
    sign = (JS / "test" / "support" / "sign.js").read_text(encoding="utf-8")
    (tmp_path / "sign.js").write_text(sign.replace("../../points.js", "ldfi-fit"))
    test = shutil.copy(HERE / "express_otel.test.mjs", tmp_path)

    done = run_tests(node, [Path(test)], tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
