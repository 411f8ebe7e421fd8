"""The page of ten minutes, typed line by line: five services of the bookshop, stripped of all
instrumentation, get what the page says and nothing else, and a campaign confirms what is planted.
So do three jars, with what it says of Java.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ldfi.cli.serve import told
from tests.docs.test_site import DOCS, ROOT, blocks

pytestmark = pytest.mark.long

PAGE = DOCS / "ten-minutes.md"
BOOKSHOP = ROOT / "examples" / "bookshop" / "services"
POLYGLOT = ROOT / "examples" / "polyglot"
PORTS = {"front": 8700, "catalogue": 8701, "stock": 8702, "warehouse": 8703, "shipping": 8704}
JAVA = ROOT / "ldfi" / "fit" / "java"
SERVICES = Path(__file__).parent / "java"
JAVA_PORTS = {"front": 8700, "stock": 8701, "prices": 8702}
SERVICE = 8600
PATIENCE = 120.0
"""Seconds that whatever is started may take until it answers."""
TYPED = list(blocks(PAGE, "sh"))
NEEDED = [f"opentelemetry.instrumentation.{each}" for each in ("fastapi", "flask", "requests")]


def stripped(text: str) -> str:
    """A service as it was before anybody thought of tracing it, that asks only those there are."""
    text = re.sub(r"^(from opentelemetry|from telemetry|HTTPX|Requests).*\n", "", text, flags=re.M)
    text = text.replace("OpenTelemetryMiddleware(app)", "app")
    text = re.sub(r'^ *"price": .*?^ {8}\),\n', "", text, flags=re.M | re.S)
    text = re.sub(r'^ *"(reviews|stars|recommended)": .*\n', "", text, flags=re.M)
    assert "telemetry" not in text.lower()
    return text


def edge(text: str) -> str:
    """The front with the page's lines where the application is complete."""
    (lines,) = blocks(PAGE, "python")
    ready, main, rest = text.partition('if __name__ == "__main__":')
    assert main
    return f"{ready}{lines}\n\n{main}{rest}"


@dataclass
class Shell:
    """A shell into which the page is typed."""

    folder: Path
    environment: dict[str, str]
    said: list[str] = field(default_factory=list)

    def __enter__(self) -> Shell:
        with (self.folder / "stderr").open("w") as errors:
            self.running = subprocess.Popen(
                ["/bin/bash"],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                bufsize=1,
                start_new_session=True,
            )
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self.running.pid, signal.SIGKILL)  # with all that was started from it
        self.running.communicate()

    def type(self, text: str) -> tuple[int, str]:
        """Type a block; its exit code, and what was printed until it ended."""
        assert self.running.stdin is not None
        assert self.running.stdout is not None
        self.running.stdin.write(f'{text}\necho "@@ended $?"\n')
        self.running.stdin.flush()
        printed = ""
        for line in self.running.stdout:
            if ended := re.search(r"@@ended (\d+)\n", line):
                return int(ended[1]), printed + line[: ended.start()]
            printed += line
        raise AssertionError(f"the shell is gone: {printed}")


def confirmed(shell: Shell) -> list[dict[str, Any]]:
    """The findings that have hurt twice."""
    found: list[dict[str, Any]] = json.loads(shell.type("ldfi findings --json")[1])["items"]
    return [each for each in found if each["state"] == "open"]


def until(found: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait as somebody waits who reads the page."""
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.2)


def answers(port: int, path: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def taken(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def opened(folder: Path, ports: dict[str, int], lacking: list[str]) -> Iterator[Shell]:
    """A shell where the services lie. Skip on a laptop that lacks something."""
    busy = [port for port in (SERVICE, *ports.values()) if taken(port)]
    if (lacking or busy) and not os.environ.get("CI"):
        pytest.skip(f"not here: {lacking}, somebody else's: {busy}")
    ours = {name: value for name, value in os.environ.items() if not name.startswith("LDFI_")}
    places = {name.upper(): f"http://127.0.0.1:{port}" for name, port in ports.items()}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # What the page installs is here already; pip must find it so, and asks nobody.
    here = {"PATH": path, "PIP_NO_INDEX": "1", "COLUMNS": "200"}
    with Shell(folder, ours | places | here) as shell:
        yield shell


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    lacking = [each for each in NEEDED if find_spec(each) is None]
    front, shelf = ((BOOKSHOP / name).read_text("utf-8") for name in ("front.py", "shelf.py"))
    (tmp_path / "front.py").write_text(edge(stripped(front)), encoding="utf-8")
    (tmp_path / "shelf.py").write_text(stripped(shelf), encoding="utf-8")
    with opened(tmp_path, PORTS, lacking) as shell:
        yield shell


@pytest.fixture
def java_shell(tmp_path: Path) -> Iterator[Shell]:
    """One with jars that know nothing of tracing, beside a checkout that nobody has built."""
    lacking = [each for each in ("javac", "mvn") if shutil.which(each) is None]
    with opened(tmp_path, JAVA_PORTS, lacking) as shell:
        for name in ("Front", "Shelf"):
            jar = f"--create --file {name.lower()}.jar --main-class {name} -C {name} .".split()
            for words in (["javac", "-d", name, str(SERVICES / f"{name}.java")], ["jar", *jar]):
                subprocess.run(words, cwd=tmp_path, check=True)
        project = tmp_path / "ldfi" / "fit" / "java"
        shutil.copytree(JAVA / "src", project / "src")
        shutil.copy(JAVA / "pom.xml", project)
        yield shell


def walked(shell: Shell, ports: dict[str, int], carry: str, services: str) -> set[str]:
    """Type the page for services that carry this and are started so; the ports of which calls were
    made to fail in what it finds."""
    began = time.monotonic()
    serve, _, tell, _, traffic, doctor, campaign, look, stop = TYPED

    for install in (serve, carry):
        assert shell.type(install)[0] == 0
    until(lambda: answers(SERVICE, "/readyz"))
    for block in (tell, services):
        assert shell.type(block)[0] == 0
    until(lambda: all(taken(port) for port in ports.values()))
    until(lambda: answers(ports["front"], "/books/17"))
    assert shell.type(traffic)[0] == 0
    until(lambda: shell.type(doctor)[0] == 0)

    # The campaign goes on beside us until it has confirmed something, and then nobody waits
    shell.type(f"{campaign.strip()} > watched 2>&1 &\nwatching=$!")
    until(lambda: bool(confirmed(shell)), seconds=240)
    found = confirmed(shell)
    code, listed = shell.type(look)
    assert (code, "/login?link=" in listed) == (0, True)
    stopped, _ = shell.type(f"ldfi campaign stop --reason enough {found[0]['campaign_id']}")
    assert stopped in {0, 2}  # 2: it has come to its end by itself
    code, _ = shell.type("wait $watching")
    assert code == 1, (shell.folder / "watched").read_text("utf-8")
    assert time.monotonic() - began < 10 * 60
    assert shell.type(stop)[0] == 0
    return {fault.split(":")[3].partition("/")[0] for each in found for fault in each["faults"]}


@pytest.mark.long
@pytest.mark.timeout(500)
def test_each_command_works_as_printed_up_to_a_confirmed_finding(shell: Shell) -> None:
    _, carry, _, services, *_ = TYPED
    assert walked(shell, PORTS, carry, services) <= {str(port) for port in PORTS.values()}


@pytest.mark.long
@pytest.mark.timeout(600)  # of which the extension is built in one
def test_so_it_does_in_java_where_no_code_changes(java_shell: Shell) -> None:
    carry, services = blocks(PAGE, "bash")
    assert walked(java_shell, JAVA_PORTS, carry, services) == {str(JAVA_PORTS["prices"])}


def test_the_page_of_java_is_enough_by_itself() -> None:
    carry, services = blocks(PAGE, "bash")
    serve, _, tell, _, *rest = TYPED
    first, *_ = (DOCS / "howto" / "java.md").read_text("utf-8").split("\n## 2")
    assert re.findall(r"^```sh\n(.*?)^```", first, re.M | re.S) == [
        *(carry, serve, tell, services),
        *rest,
    ]


def test_what_services_are_told_is_what_the_service_says() -> None:
    said = {line for line in told(f"http://127.0.0.1:{SERVICE}").splitlines() if "OTEL_" in line}
    shown = {line.partition("  #")[0] for line in TYPED[2].splitlines() if "OTEL_" in line}
    assert said == shown


def test_go_and_node_are_shown_as_they_are_run() -> None:
    go = (POLYGLOT / "go" / "telemetry" / "telemetry.go").read_text("utf-8")
    node = (POLYGLOT / "node" / "tracing.js").read_text("utf-8")
    for language, text in (("go", go), ("js", node)):
        shown = list(blocks(PAGE, language))
        assert shown
        assert all(block in text for block in shown), language
    assert "node --import ldfi-fit/register --import ./tracing.js" in PAGE.read_text("utf-8")
