"""``ldfi explore`` of programs in four languages, of which one needed call is lost to sight, each
really run; and of such that lose nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ldfi.cli.ports import free_port
from ldfi.explore.external.environment import variables
from ldfi.explore.external.services import Service, Services
from tests.cli.test_explore import KEYS, SHOP, TEST, explore
from tests.fit import java
from tests.kit import needs

PROGRAMS = Path(__file__).parents[1] / "explore" / "external" / "blind"
NODE_FIT = Path(__file__).parents[2] / "fit" / "js"
LOST = {
    "python": [
        *("pool", "map", "thread", "timer", "worker", "context", "http.client", "urllib", "socket"),
        *("child", "adapter", "fork", "unrecorded", "hand", "new trace", "processes", "sidecar"),
        "bare loop",
    ],
    "node": [
        *("root", "nameless", "suppressed", "ignored", "hand", "queue", "bound", "port", "worker"),
        *("child", "fork", "socket", "fetch", "exec", "sidecar", "unexported"),
    ],
    "go": [
        *("todo", "alone", "timer", "queue", "root", "nameless", "plain", "default", "untold"),
        *("filtered", "hand", "socket", "child", "batch", "unexported"),
    ],
    "java": [
        *("root", "nameless", "new trace", "queue", "timer", "socket", "child", "untold"),
        *("old client", "thread", "callback"),
    ],
}
WHY = (
    "arrivals at store",
    "calls of page at store",
    "no fault has fired at page>http:GET:store/price/*: no injector in page",  # handed on by hand
    "no call was seen",
    "the trace is not whole",
)
SEEN = {
    "python": ["seen", "loop", "copy", "within"],
    "node": ["seen", "later", "all", "tick"],
    "go": ["seen", "goroutine", "later", "inside"],
    "java": ["seen", "pool", "future", "parallel"],
}

pytestmark = [pytest.mark.long, pytest.mark.languages, pytest.mark.timeout(300)]

Program = tuple[list[str], dict[str, str]]


def of_python(_: Path) -> Program:
    return [sys.executable, "-m", "tests.explore.external.blind.page"], {}


def of_node(_: Path) -> Program:
    if not (NODE_FIT / "node_modules").exists():
        subprocess.run([needs.program("npm"), "ci", "--ignore-scripts"], cwd=NODE_FIT, check=True)
    register = (NODE_FIT / "register.js").as_uri()
    words = [needs.program("node"), "--import", register, str(PROGRAMS / "page.mjs")]
    return words, {"NODE_MODULES": str(NODE_FIT)}


def of_go(folder: Path) -> Program:
    built = folder / "page"
    words = [needs.program("go"), "build", "-buildvcs=false", "-o", str(built), "."]
    subprocess.run(words, cwd=PROGRAMS / "go", check=True)
    return [str(built)], {}


def of_java(folder: Path) -> Program:
    target = java.built()
    beside = os.pathsep.join((str(folder), str(target / "beside" / "*")))
    source = PROGRAMS / "java" / "Page.java"
    words = [needs.program("javac"), "-Xlint:all,-processing", "-Werror", "-d", str(folder)]
    subprocess.run([*words, "-cp", beside, str(source)], check=True)
    agent = target / "agents" / f"opentelemetry-javaagent-{java.NEWEST}.jar"
    words = [
        *("java", "-XX:TieredStopAtLevel=1", f"-javaagent:{agent}"),
        f"-Dotel.javaagent.extensions={target / 'ldfi-fit.jar'}",
        *("-Dotel.metrics.exporter=none", "-Dotel.logs.exporter=none", "-cp", beside, "Page"),
    ]
    return words, {}


MADE: dict[str, Callable[[Path], Program]] = {
    "python": of_python,
    "node": of_node,
    "go": of_go,
    "java": of_java,
}
OFF = {
    ("java", "untold"): {"OTEL_INSTRUMENTATION_JAVA_HTTP_CLIENT_ENABLED": "false"},
    ("java", "old client"): {"OTEL_INSTRUMENTATION_HTTP_URL_CONNECTION_ENABLED": "false"},
}
"""Instrumentations that are switched off."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Program]]:
    made: dict[str, Program] = {}

    def program(language: str) -> Program:
        if language not in made:
            made[language] = MADE[language](tmp_path_factory.mktemp(language))
        return made[language]

    yield program


def explored(
    folder: Path, program: Program, told: dict[str, str], *options: str
) -> dict[str, object]:
    words, own = program
    receiving = f"127.0.0.1:{free_port()}"
    block = variables(KEYS, f"http://{receiving}")
    services = Services(block, folder, seconds=90.0)
    store = Service("store", (*SHOP, "store"), free_port(), "/health")
    page = Service("page", words, free_port(), "/health", {"STORE": store.url, **own, **told})
    try:
        services.start(store, page)
        environment = block | {"LDFI_RECEIVE": receiving}
        done = explore(
            *("--target", page.url, "--json", *options, "--", *TEST), environment=environment
        )
    finally:
        services.close()
    document: dict[str, object] = json.loads(done.stdout)
    if os.environ.get("BLIND_LOG"):
        with Path(os.environ["BLIND_LOG"]).open("a") as log:
            print(
                words[0],
                told,
                document["verdict"],
                document["reason"],
                document["unseen"],
                file=log,
            )
    return document


@pytest.mark.parametrize(("language", "way"), [(each, way) for each in LOST for way in LOST[each]])
def test_a_program_that_loses_a_needed_call_never_passes(
    programs: Callable[[str], Program], language: str, way: str, tmp_path: Path
) -> None:
    told = {"WAY": way, **OFF.get((language, way), {})}
    document = explored(tmp_path, programs(language), told)
    assert document["verdict"] == "inconclusive", document
    assert any(each in str(document["reason"]) for each in WHY), document["reason"]


@pytest.mark.parametrize("beside", [{}, {"POLLS": "1"}], ids=["alone", "beside a poller"])
@pytest.mark.parametrize(("language", "way"), [(each, way) for each in SEEN for way in SEEN[each]])
def test_a_program_that_loses_nothing_is_not_blamed(
    programs: Callable[[str], Program],
    language: str,
    way: str,
    beside: dict[str, str],
    tmp_path: Path,
) -> None:
    told = {"WAY": way, **beside}
    found = explored(tmp_path, programs(language), told)
    assert (found["verdict"], found["unseen"]) == ("harmful", ""), found
    fine = explored(tmp_path, programs(language), told, "--protected", "*price*")
    assert (fine["verdict"], fine["unseen"]) == ("tolerated", ""), fine
