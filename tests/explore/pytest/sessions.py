"""Sessions of pytest with the plugin: in a process of its own, or in this one."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

CASES = Path(__file__).parent / "cases"
Document = dict[str, Any]

# What pytest does once in a process, or what the session around it is busy with.
ONCE = ("faulthandler", "unraisableexception", "threadexception", "hypothesispytest", "xdist")


class Session:
    """One session: its output, what became of each test, and the report. ``asked``: the tests that
    it runs, all of ``cases`` by default. ``within``: run it in this process, which takes a fraction
    of the time."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        cases: Path = CASES,
        asked: Sequence[str] = (),
        within: bool = False,
        **environment: str,
    ) -> None:
        self.folder = folder
        self.report = folder / "out" / "report.json"
        junit = folder / "junit.xml"
        words = [
            *("-p", "no:cacheprovider", "-c", "/dev/null", f"--basetemp={folder / 'tmp'}"),
            *(f"--rootdir={cases}", f"--confcutdir={cases}", "-o", "python_files=case_*.py"),
            *("-W", "error", "-o", "junit_family=xunit1", f"--junitxml={junit}"),
            *(f"--ldfi-report={self.report}", *options, *(asked or [str(cases)])),
        ]
        self.code, self.output = (
            _within(words, folder) if within else _outside(words, folder, environment)
        )
        self.outcomes: dict[str, list[str]] = {}
        if junit.exists():
            for case in ElementTree.parse(junit).iter("testcase"):  # noqa: S314
                found = [
                    child.tag for child in case if child.tag in {"failure", "error", "skipped"}
                ]
                self.outcomes.setdefault(case.attrib["name"], []).extend(found)
        self.tests: dict[str, Document] = {}
        self.documents: dict[str, Document] = {}
        if self.report.exists():
            tests = json.loads(self.report.read_text(encoding="utf-8"))["tests"]
            self.tests = {each["test"].rpartition("::")[2]: each for each in tests}
            self.documents = {each["test"]: each for each in tests}

    def found(self, test: str) -> list[list[str]]:
        return [finding["injected"] for finding in self.tests[test]["findings"]]


def _outside(words: list[str], folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | environment,
    )
    return done.returncode, done.stdout + done.stderr


def _within(words: list[str], folder: Path) -> tuple[int, str]:
    output, before = io.StringIO(), set(sys.modules)
    left_out = [word for name in ONCE for word in ("-p", f"no:{name}")]
    try:
        with chdir(folder), redirect_stdout(output), redirect_stderr(output):
            code = pytest.main([*left_out, "--capture=sys", "--import-mode=importlib", *words])
    finally:
        for name in set(sys.modules) - before:
            if name.partition(".")[0].startswith(("case_", "conftest")):
                del sys.modules[name]
    return int(code), output.getvalue()
