"""``--ldfi-lessons``: what a test has survived is not run again, in a session of pytest."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.pytest_plugin.test_plugin import Session

ROOT = Path(__file__).parents[3]
CONFTEST = """
import sys
import pytest
from pathlib import Path
from ldfi.experiments.elsewhere.services import Service

@pytest.fixture(scope="session")
def page(ldfi_services):
    def service(role, port, **environment):
        command = [{python!r}, "-m", "tests.experiments.elsewhere.shop", role]
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

pytestmark = pytest.mark.timeout(600)


def free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("cases", "services", "out"):
        (tmp_path / name).mkdir()
    conftest = CONFTEST.format(python=sys.executable, ports=[free(), free()])
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


def test_what_a_session_writes_beside_a_test_is_no_part_of_it(folder: Path) -> None:
    """Runs that were kept, reports, scenarios, logs, and what coverage has counted."""
    cases = folder / "cases"
    written = [f"--ldfi-lessons={cases}", f"--ldfi-report={cases / 'said.json'}"]
    written += [f"--junitxml={cases / 'junit.xml'}", f"--log-file={cases / 'run.log'}"]

    def kept() -> dict[str, Any]:
        session = Session(folder, *written, cases=cases, PYTHONPATH=str(ROOT))
        assert (cases / "junit.xml").exists(), session.output
        (document,) = json.loads((cases / "said.json").read_text())["tests"]
        return {each: document[each] for each in ("kept", "not_kept")}

    before = kept()
    for name in (".coverage", ".coverage.host.1.x", "coverage.xml", "htmlcov/index.html"):
        (cases / name).parent.mkdir(exist_ok=True)
        (cases / name).write_text("1")
    (cases / "test-page-0123456789ab.yaml").write_text("a scenario")
    after = kept()
    (cases / "0123456789ab.json").write_text("no lessons, and no report")
    (cases / ".coveragerc").write_text("[run]")
    changed = kept()

    assert before == {"kept": 0, "not_kept": ""}
    assert (after["kept"] > 0, after["not_kept"]) == (True, "")
    assert changed["kept"] == 0
    assert changed["not_kept"] == "changed: file .coveragerc, file 0123456789ab.json"
