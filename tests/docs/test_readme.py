"""The README is short, and true: its commands run on a copy, its promises name tests that exist."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from ldfi.experiments.domain.settings import Settings
from tests.docs.test_site import ROOT, blocks

README: Final = ROOT / "README.md"
TEXT: Final = README.read_text("utf-8")
MOST_WORDS: Final = 700
PROMISE: Final = re.compile(r"\(\[`(?P<test>test_\w+)`\]\((?P<file>[\w/.]+)\)\)")
TO_PAGES: Final = re.compile(r"\]\((?P<page>[\w/.-]+\.md)(?:#(?P<anchor>[\w-]+))?\)")


def section(name: str) -> str:
    return TEXT.partition(f"\n## {name}\n")[2].partition("\n## ")[0]


def typed() -> Iterator[str]:
    """Each command of the README, without its comment."""
    for block in blocks(README, "sh"):
        for line in block.splitlines():
            yield line.partition("#")[0].strip()


def test_it_is_read_in_a_screen_and_a_half() -> None:
    assert len(TEXT.split()) <= MOST_WORDS


def test_each_promise_of_safety_names_a_test_that_exists() -> None:
    promises = [each for each in section("Why production is safe").split("\n- ") if "**" in each]
    assert len(promises) == 6
    for promise in promises:
        named = PROMISE.search(promise)
        assert named, promise
        source = (ROOT / named["file"]).read_text("utf-8")
        assert f"def {named['test']}(" in source, named[0]


def test_its_figures_are_those_of_the_code() -> None:
    assert f"δ of the treated devices ({Settings().delta * 100:g} % by default)" in TEXT


def test_links_lead_to_sections_that_exist() -> None:
    for link in TO_PAGES.finditer(TEXT):
        page = (ROOT / link["page"]).read_text("utf-8")
        headings = re.findall(r"^#+ (.*)$", page, re.M)
        known = {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}
        assert link["anchor"] is None or link["anchor"] in known, link[0]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A clone as the README makes it, into whose environment everything is installed already."""
    if not (ROOT / ".git").exists():
        pytest.skip("a source archive has nothing to clone")
    git = shutil.which("git") or "git"
    subprocess.run([git, "clone", "--quiet", str(ROOT), "ldfi"], cwd=tmp_path, check=True)
    environment = tmp_path / "ldfi" / ".venv"
    environment.mkdir()
    for each in Path(sys.prefix).iterdir():
        if each.name not in {".demo", ".dev"}:
            (environment / each.name).symlink_to(each)
    for stamp in (".demo", ".dev"):
        (environment / stamp).touch()
    return tmp_path / "ldfi"


@pytest.mark.long
@pytest.mark.timeout(600)
def test_its_commands_run_on_a_copy(copy: Path) -> None:
    clone, *commands = typed()
    assert re.fullmatch(r"git clone https://\S+/ldfi && cd ldfi", clone)
    ours = {name: value for name, value in os.environ.items() if not name.startswith("LDFI_")}
    given = {"make test": "make test ARGS='tests/solver/test_bound.py'"}  # the whole: in CI
    said = {}
    for command in commands:
        done = subprocess.run(
            ["/bin/sh", "-c", given.get(command, command)],
            cwd=copy,
            env={**ours, "PYTHONPATH": str(copy), "COLUMNS": "100", "PIP_NO_INDEX": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        said[command] = "\n".join(line.rstrip() for line in done.stdout.splitlines())
    assert "exactly the 3 planted" in said["make demo"]
    (shown,) = blocks(README, "text")
    assert shown in said["make analyze TRACES=examples/traces"]
