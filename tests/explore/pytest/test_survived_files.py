"""``--ldfi-lessons``: what a test has survived is not run again, in a session of pytest."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ldfi.cli.ports import free_port
from tests.explore.pytest.sessions import Session

ROOT = Path(__file__).parents[3]
CONFTEST = """
import sys
import pytest
from pathlib import Path
from ldfi.explore.external.services import Service

@pytest.fixture(scope="session")
def page(ldfi_services):
    def service(role, port, **environment):
        command = [{python!r}, "-m", "tests.explore.external.shop", role]
        folder = Path(__file__).parents[1] / "services"
        return Service(role, command, port, "/health", environment, folder, code=[role])

    store = service("store", {ports[0]})
    page = service("page", {ports[1]}, STORE=store.url, SHOP="remembers")
    ldfi_services.start(store, page)
    return page.url
"""
CASE = """
import httpx
import pytest

@pytest.mark.ldfi(protected=("*price*",), time_limit=300)
def test_page(page, ldfi):
    answer = httpx.get(page + "/page/17", trust_env=False, timeout=20)
    assert answer.status_code == 200 or ldfi.faults
"""

LISTENS = (
    "import os, socket, time\n"
    "with socket.create_server(('127.0.0.1', int(os.environ['PORT']))): time.sleep(600)"
)
ALONE = f"""
from contextlib import suppress
from pathlib import Path
import pytest
from ldfi import fit
from ldfi.explore.external.services import Service

@pytest.fixture(scope="session")
def page(ldfi_services):
    command, folder = [{sys.executable!r}, "-S", "-c", {LISTENS!r}], Path(__file__).parents[1]
    ldfi_services.start(Service("app", command, {{port}}, "", {{{{}}}}, folder, code=["code"]))

@fit.point("cache", "get")
def cached(): return 1

@fit.point("cache", "list")
def listed(): return 1

@pytest.mark.ldfi
def test_page(page):
    for each in (cached, listed):
        with suppress(Exception):
            each()
"""
"""Needs neither of what it calls, all of which is in its own file, nor the service."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("cases", "services", "out"):
        (tmp_path / name).mkdir()
    conftest = CONFTEST.format(python=sys.executable, ports=[free_port(), free_port()])
    (tmp_path / "cases" / "conftest.py").write_text(conftest)
    (tmp_path / "cases" / "case_page.py").write_text(CASE)
    for role in ("page", "store"):
        (tmp_path / "services" / role).write_text("1")
    return tmp_path


def explored(folder: Path, *options: str, changed: str = "") -> tuple[int, int]:
    """How many runs were made, and how many were kept. ``changed``: what is said to have."""
    kept = f"--ldfi-lessons={folder / 'kept'}"
    session = Session(folder, kept, *options, cases=folder / "cases", PYTHONPATH=str(ROOT))
    document = session.tests["test_page"]
    assert document["verdict"] == "tolerated", session.output
    assert document["not_kept"] == changed, session.output
    assert ("kept from an earlier exploration" in session.output) == (document["kept"] > 0)
    assert changed in session.output
    return document["runs"], document["kept"]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_runs_are_kept_until_a_service_or_the_test_changes(folder: Path) -> None:
    every, none = explored(folder)
    made, kept = explored(folder)
    (folder / "services" / "store").write_text("2")
    after_service = explored(folder, changed="changed: service store")
    (folder / "cases" / "case_page.py").write_text(f"{CASE}# another test\n")
    after_test = explored(folder, changed="changed: file case_page.py")

    assert none == 0
    assert (made + kept, kept >= 1) == (every, True)
    assert after_service == after_test == (every, 0)


def test_runs_are_kept_until_the_test_or_something_beside_it_changes(tmp_path: Path) -> None:
    """Runs that were kept, reports, scenarios, logs, and what coverage has counted, are nothing."""
    cases = tmp_path / "cases"
    cases.mkdir()
    (tmp_path / "code").write_text("1")
    case = ALONE.format(port=free_port())
    (cases / "case_page.py").write_text(case)
    written = [f"--ldfi-lessons={cases}", f"--ldfi-report={cases / 'said.json'}"]
    written += [f"--junitxml={cases / 'junit.xml'}", f"--log-file={cases / 'run.log'}"]

    def session() -> tuple[int, int, str]:
        done = Session(tmp_path, *written, cases=cases, within=True)
        assert (cases / "junit.xml").exists(), done.output
        (document,) = json.loads((cases / "said.json").read_text())["tests"]
        assert document["verdict"] == "tolerated", done.output
        assert ("kept from an earlier exploration" in done.output) == (document["kept"] > 0)
        assert document["not_kept"] in done.output
        return document["runs"], document["kept"], document["not_kept"]

    every, *before = session()
    for name in (".coverage", ".coverage.host.1.x", "coverage.xml", "htmlcov/index.html"):
        (cases / name).parent.mkdir(exist_ok=True)
        (cases / name).write_text("1")
    (cases / "test-page-0123456789ab.yaml").write_text("a scenario")
    made, kept, nothing = session()
    (cases / "0123456789ab.json").write_text("no results, and no report")
    (cases / ".coveragerc").write_text("[run]")
    changed = session()
    (cases / "case_page.py").write_text(f"{case}# another test\n")
    after_test = session()
    (tmp_path / "code").write_text("2")
    after_service = session()

    assert before == [0, ""]
    assert (made + kept, kept > 0, nothing) == (every, True, "")
    files = "file .coveragerc, file 0123456789ab.json"
    assert changed == (every, 0, f"changed: {files}")
    assert after_test == (every, 0, "changed: file case_page.py")
    assert after_service == (every, 0, "changed: service app")
