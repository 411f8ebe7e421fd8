"""``ldfi explore``: a test in any language, against a system in processes of its own."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from urllib.request import urlopen
from xml.etree import ElementTree

import pytest

from ldfi.cli import exits
from ldfi.cli.ports import free_port
from ldfi.explore.external.environment import variables
from ldfi.explore.external.services import Service, Services
from ldfi.explore.external.stamp import SharedKeys
from ldfi.scenarios.scenario import read
from ldfi.testing.conformance.front import eventually
from tests.kit.cli import ldfi

KEYS = SharedKeys("test:0123456789abcdef0123456789abcdef")
SHOP = (sys.executable, "-m", "tests.explore.external.shop")
ASK = "import os, urllib.request as u; u.urlopen(os.environ['LDFI_TARGET'] + '/page/17')"
TEST = (sys.executable, "-c", ASK)
RECEIVE = "127.0.0.1:{}"
ROOT = Path(__file__).parent

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def receiving() -> str:
    return RECEIVE.format(free_port())


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, receiving: str) -> Iterator[str]:
    block = variables(KEYS, f"http://{receiving}")
    services = Services(block, tmp_path_factory.mktemp("logs"))
    store = Service("store", (*SHOP, "store"), free_port(), "/health")
    page = Service("page", (*SHOP, "page"), free_port(), "/health", {"STORE": store.url})
    try:
        services.start(store, page)
        yield page.url
    finally:
        services.close()


def explore(*arguments: str, environment: Mapping[str, str]) -> CompletedProcess[str]:
    return ldfi("explore", *arguments, **environment)


PAIR = (
    "page>http:GET:store/bestsellers fails (refused)"
    " and page>http:GET:store/reviews/* fails (refused)"
)
"""Without either there is nothing to list. That the store is down hurts by its price alone."""


@pytest.fixture
def told(receiving: str) -> Mapping[str, str]:
    """What the block says to whoever explores."""
    return variables(KEYS, f"http://{receiving}") | {"LDFI_RECEIVE": receiving}


def test_a_command_is_explored_and_told_of_in_every_form(
    shop: str, told: Mapping[str, str], tmp_path: Path
) -> None:
    report, junit = tmp_path / "r.json", tmp_path / "j.xml"
    written = ("--report", str(report), "--junit", str(junit))

    done = explore("--target", shop, *written, "--json", "--", *TEST, environment=told)

    assert done.returncode == exits.FOUND, done.stdout + done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    found = {each["words"] for each in document["findings"]}
    assert found == {"page>http:GET:store/price/* fails (refused)", PAIR}
    assert document["runs"] <= document["exhaustive"]
    assert json.loads(report.read_text())["tests"] == [document]
    assert f"fails when {PAIR}" in report.with_suffix(".md").read_text()
    (case,) = ElementTree.parse(junit).iter("testcase")  # noqa: S314
    assert f"fails when {PAIR}" in (case.findtext("failure") or "")
    scenario = read(Path(document["findings"][0]["scenario"]))
    assert (scenario.request.method, scenario.request.path) == ("GET", "/page/*")


@pytest.mark.long
def test_several_at_a_time_find_what_one_after_the_other_finds(
    shop: str, told: Mapping[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    timed = (
        f"import pathlib, time\nlog = pathlib.Path({str(log)!r}).open('a')\n"
        f"log.write(f'{{time.monotonic()}} 1\\n'); log.flush()\n"
        f"try:\n {ASK}\nfinally:\n log.write(f'{{time.monotonic()}} -1\\n')"
    )

    done = explore(
        *("--target", shop, "--workers", "3", "--json", "--", sys.executable, "-c", timed),
        environment=told,
    )

    assert done.returncode == exits.FOUND, done.stdout + done.stderr
    found = {each["words"] for each in json.loads(done.stdout)["findings"]}
    assert found == {"page>http:GET:store/price/* fails (refused)", PAIR}
    lines = [line.split() for line in log.read_text().splitlines()]
    steps = sorted((float(when), int(number)) for when, number in lines)
    assert 1 < max(itertools.accumulate(n for _, n in steps)) <= 3


@pytest.mark.long
def test_what_does_without_everything_is_fine_and_assertions_ask_for_more(
    shop: str, told: Mapping[str, str]
) -> None:
    patient = (sys.executable, "-c", f"try:\n {ASK}\nexcept OSError: pass")
    only = ("--target", shop, "--protected", "*price*", "--json")

    fine = explore(*only, "--", *patient, environment=told)
    strict = explore(*only, "--assert", "status==200", "--", *patient, environment=told)

    assert fine.returncode == exits.FINE, fine.stdout + fine.stderr
    assert strict.returncode == exits.FOUND, strict.stdout + strict.stderr
    (finding,) = json.loads(strict.stdout)["findings"]
    assert "is not status==200" in finding["error"]


@pytest.mark.long
def test_what_hurts_in_one_way_is_tried_in_others_where_that_is_asked_for(
    shop: str, told: Mapping[str, str]
) -> None:
    ways = ("--target", shop, "--kind", "refused,status:500", "--max-size", "1", "--json")

    def found(*more: str) -> list[list[str]]:
        done = explore(*ways, *more, "--", *TEST, environment=told)
        assert done.returncode == exits.FOUND, done.stdout + done.stderr
        return [each["injected"] for each in json.loads(done.stdout)["findings"]]

    each = found("--each-kind")
    (one,) = found()
    assert one in each
    assert {fault.partition("@")[0] for (fault,) in each} == {"refused", "status:500"}
    assert {fault.partition("@")[2] for (fault,) in each} == {one[0].partition("@")[2]}


@pytest.mark.long
def test_what_was_survived_is_kept_until_something_declared_changes(
    shop: str, told: Mapping[str, str], tmp_path: Path
) -> None:
    patient = (sys.executable, "-c", f"try:\n {ASK}\nexcept OSError: pass")
    code, report = tmp_path / "page.py", tmp_path / "r.json"
    code.write_text("1")
    kept = ("--target", shop, "--lessons", str(tmp_path / "kept"), "--report", str(report))
    declared = (*("--code", str(ROOT)), *(f"--code={name}={code}" for name in ("page", "store")))

    def explored(*options: str) -> dict[str, Any]:
        done = explore(*kept, *options, "--json", "--", *patient, environment=told)
        assert done.returncode == exits.FINE, done.stdout + done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    first = explored(*declared)
    again = explored(*declared)
    markdown = report.with_suffix(".md").read_text()
    evidence = json.loads(report.with_suffix(".evidence.json").read_text())
    code.write_text("2")
    changed = explored(*declared)
    undeclared = explored(*declared[:-1])

    assert [each["kept"] for each in (first, changed, undeclared)] == [0, 0, 0]
    assert again["kept"] >= 1
    assert again["runs"] + again["kept"] == first["runs"] == changed["runs"]
    assert f"and {again['kept']} kept from before" in markdown
    (of_test,) = evidence["classes"]
    assert sum(run["record"].get("kept", False) for run in of_test["runs"]) == again["kept"]
    assert undeclared["not_kept"] == "store (not declared)"


def test_what_kills_a_process_is_said_and_tried_once(
    tmp_path: Path, receiving: str, told: Mapping[str, str]
) -> None:
    deaths = tmp_path / "deaths"
    services = Services(variables(KEYS, f"http://{receiving}"), tmp_path)
    store = Service("store", (*SHOP, "store"), free_port(), "/health")
    mortal = {"STORE": store.url, "SHOP": "mortal", "DEATHS": str(deaths)}
    page = Service("page", (*SHOP, "page"), free_port(), "/health", mortal)
    try:
        services.start(store, page)
        named = ("--name", f"{store.url.rpartition('/')[2]}=store")
        done = explore("--target", page.url, *named, "--", *TEST, environment=told)
    finally:
        services.close()

    assert done.returncode == exits.FOUND, done.stdout + done.stderr
    lost = "killed the process: page, when page>http:GET:store/price/* fails (refused)"
    assert f"{lost}; tried once, and no more" in done.stdout
    assert "flaky" not in done.stdout
    assert len(deaths.read_text(encoding="utf-8").splitlines()) == 1


@pytest.mark.long
def test_exporters_that_met_a_closed_port_are_waited_for(
    tmp_path: Path, receiving: str, told: Mapping[str, str]
) -> None:
    services = Services(variables(KEYS, f"http://{receiving}"), tmp_path)
    store = Service("store", (*SHOP, "store"), free_port(), "/health", {"SHOP": "grpc"})
    at_store = {"STORE": store.url, "SHOP": "grpc"}
    page = Service("page", (*SHOP, "page"), free_port(), "/health", at_store)
    try:
        services.start(store, page)
        with urlopen(f"{page.url}/page/17"):  # noqa: S310
            met = "StatusCode.UNAVAILABLE"
            assert eventually(lambda: met in (tmp_path / "store.log").read_text())
        exact = ("--target", page.url, "--json", "--", *TEST)
        at_once = explore("--back-off", "0", *exact, environment=told)
        done = explore(*exact, environment=told)
    finally:
        services.close()

    assert at_once.returncode == exits.INCONCLUSIVE, at_once.stdout
    assert done.returncode == exits.FOUND, done.stdout + done.stderr
    found = {each["words"] for each in json.loads(done.stdout)["findings"]}
    assert found == {"page>http:GET:store/price/* fails (refused)", PAIR}
    assert "An exporter that met a closed port keeps away" in done.stderr


def test_troubles_are_told_apart(shop: str, told: Mapping[str, str]) -> None:
    def explored(*command: str) -> CompletedProcess[str]:
        return explore("--target", shop, "--", *command, environment=told)

    broken = explored(sys.executable, "-c", "print('no such page'); raise SystemExit(7)")
    idle = explored(sys.executable, "-c", "pass")
    missing = explored("./no-such-test")

    assert broken.returncode == exits.INCONCLUSIVE
    assert "no such page" in broken.stdout
    assert "fails without any fault: exit code 7" in broken.stdout
    assert idle.returncode == exits.INCONCLUSIVE
    assert "the command sent nothing through" in idle.stdout
    assert missing.returncode == exits.USAGE
    assert "'./no-such-test' cannot be run: there is no such file" in missing.stderr


WRONG = {
    "a folder": (("--", "{tmp}"), "it is a folder"),
    "no program": (("--", "{tmp}/plain"), "chmod +x"),
    "no script": (("--", "{tmp}/wordless"), "#!/bin/sh"),
    "no name": (("--", ""), "no name of a program"),
    "no port": (("--target", "http://127.0.0.1:http", "--", "true"), "is not a target"),
    "port 99999": (("--target", "http://127.0.0.1:99999", "--", "true"), "is not a target"),
    "half an IPv6": (("--target", "http://[::1", "--", "true"), "is not a target"),
    "a long name": (("--target", f"http://{'a' * 300}", "--", "true"), "is not a target"),
    "listen, taken": (("--listen", "{taken}", "--", "true"), "cannot listen at"),
    "listen, a name": (("--listen", f"{'a' * 300}:80", "--", "true"), "cannot listen at"),
    "receive, taken": (("--receive", "{taken}", "--", "true"), "nothing can be received at"),
    "a kind": (("--kind", "fire", "--", "true"), "'fire' is not a kind of fault"),
    "a time": (("--time-limit", "nan", "--", "true"), "time_limit=nan"),
    "report": (("--report", "{tmp}", "--", "true"), "it is a folder"),
    "junit": (("--junit", "{tmp}/plain/j.xml", "--", "true"), "plain"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_explored_is_one_sentence(case: str, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("echo")
    (tmp_path / "wordless").write_text("echo")
    (tmp_path / "wordless").chmod(0o755)
    words, says = WRONG[case]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = "{}:{}".format(*taken.getsockname())
        given = [each.format(tmp=tmp_path, taken=address) for each in words]
        before = ["--target", "http://127.0.0.1:9", "--receive", "127.0.0.1:0"]
        done = explore(*before, *given, environment={"COLUMNS": "999"})

    assert (done.returncode, done.stdout) == (exits.USAGE, "")
    assert says in done.stderr
    assert re.fullmatch(r"ldfi: (?!ldfi|.*Errno).*\n", done.stderr), done.stderr


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("sleep 30 & echo $! > pid; echo out; exit 7", "exit code 7"),
        ("echo $$ > pid; echo out; kill -9 $$", "it was killed by SIGKILL"),
    ],
)
def test_a_command_ends_when_it_ends(script: str, said: str, tmp_path: Path) -> None:
    words = ("--target", "http://127.0.0.1:9", "--receive", "127.0.0.1:0", "--time-limit", "10")
    at_once = {"OTEL_BSP_SCHEDULE_DELAY": "100"}
    try:
        done = explore(*words, "--", "sh", "-c", f"cd {tmp_path}; {script}", environment=at_once)
    finally:
        with suppress(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)

    assert done.returncode == exits.INCONCLUSIVE
    assert done.stdout == f"out\nldfi: fails without any fault: {said}\n"


def test_the_block_is_printed_in_the_words_of_whoever_reads_it() -> None:
    shell = explore("env", environment={"FIT_KEYS": KEYS.text})
    kubernetes = explore("env", "--for", "kubernetes", environment={"FIT_KEYS": KEYS.text})

    said = dict(shlex.split(line)[1].split("=", 1) for line in shell.stdout.splitlines())
    expected = variables(KEYS, "http://127.0.0.1:4318")
    assert said == expected | {"LDFI_RECEIVE": "127.0.0.1:4318"}
    assert kubernetes.returncode == exits.USAGE
    assert "--endpoint" in kubernetes.stderr
