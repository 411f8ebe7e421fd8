"""The README and the architecture are true: files that are named exist, the picture is what is
enforced, and what the tutorial shows of a sample is what the command says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import pytest

from tests.examples.loading import loaded

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorial.md"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
WALKS = ("A span", "A hypothesis", "A device report")
MOST_FILES = 12
_BLOCK = re.compile(r"^```.*?^```$", re.M | re.S)
_LINK = re.compile(r"\]\((?P<path>[^)#\s]+)[^)]*\)")
_CODE = re.compile(r"`(?P<path>[\w./-]+/[\w.-]*|[\w./-]+\.(?:py|md|svg|toml|yaml))`")


def named(page: Path) -> set[Path]:
    """Every file and folder that a page names: in links, from the page; in code, from the root."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    links = {each["path"] for each in _LINK.finditer(text)}
    links = {each for each in links if not each.startswith(("http://", "https://"))}
    codes = {each["path"] for each in _CODE.finditer(text)}
    codes = {each for each in codes if not each.startswith("/")}  # routes of the API
    return {page.parent / each for each in links} | {ROOT / each for each in codes}


def walks() -> dict[str, list[str]]:
    """The files of each walk, in the order in which it comes by them."""
    sections = re.split(r"^## ", ARCHITECTURE.read_text(encoding="utf-8"), flags=re.M)
    found = {each.partition("\n")[0]: each for each in sections}
    return {name: re.findall(r"\]\(\.\./([\w/]+\.py)\)", found[name]) for name in WALKS}


def house() -> ModuleType:
    return loaded(ROOT / "docs" / "house.py")


@pytest.mark.parametrize("page", [README, ARCHITECTURE], ids=lambda page: page.name)
def test_every_file_that_is_named_exists(page: Path) -> None:
    files = named(page)
    assert len(files) > 10
    assert [str(each) for each in sorted(files) if not each.exists()] == []


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_can_be_read_in_one_sitting(walk: str) -> None:
    files = walks()[walk]
    assert 5 <= len(files) <= MOST_FILES
    assert len(set(files)) == len(files), "a walk comes by each file once"


def test_the_picture_is_what_import_linter_enforces() -> None:
    drawn = (ROOT / "docs" / "house.svg").read_text(encoding="utf-8")
    assert drawn == house().picture(), "run: python docs/house.py"


def test_what_may_be_imported_stands_below_what_imports_it() -> None:
    contracts = house().contracts()
    heights = {
        each.attrib["data-room"]: int(each.attrib["y"])
        for each in ET.parse(ROOT / "docs" / "house.svg").iter()  # noqa: S314 - our own file
        if "data-room" in each.attrib
    }
    for name, container in (
        ("rooms are stacked", ""),
        ("the rooms of experiments are stacked", "ldfi.experiments."),
        ("the domain is stacked", "ldfi.experiments.domain."),
    ):
        rows = [{heights[container + room] for room in row} for row in contracts[name]]
        assert all(len(row) == 1 for row in rows), "rooms of one layer stand side by side"
        downwards = [height for row in rows for height in row]
        assert downwards == sorted(set(downwards)), name


@pytest.mark.long
def test_what_the_tutorial_shows_of_the_sample_is_what_the_command_says() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ldfi.cli", "analyze", "examples/traces"],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=True,
    )
    said = "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())
    assert f"```text\n{said}\n```" in TUTORIAL.read_text(encoding="utf-8")
