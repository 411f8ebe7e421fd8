"""pytest's plugin where its extra is not installed: harmless, and clear to whoever asks for it."""

from __future__ import annotations

import subprocess
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ldfi.explore.pytest.plugin import NEEDED
from tests.packaging.environments import Environment

pytestmark = pytest.mark.long

QUIET = "def test_nothing_of_ldfi():\n    assert True\n"
MARKED = """
import pytest

@pytest.mark.ldfi(max_size=1)
def test_marked():
    assert True
"""
WITH_FIXTURE = "def test_with_fixture(ldfi):\n    assert ldfi.faults is not None\n"
HINT = "cannot be imported: pip install 'ldfi[pytest]'"


def run_on(
    environment: Environment, folder: Path, text: str, *options: str
) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(text)
    words = ("-m", "pytest", "-p", "no:cacheprovider", "-W", "error", "--strict-markers", *options)
    return environment.run("python", *words, "test_it.py", folder=folder)


def test_the_environment_has_nothing_of_the_extra(plain: Environment) -> None:
    """Or the tests below would be worth nothing."""
    assert {each.name for each in plain.installed()}.isdisjoint({"httpx", "pydantic", "python-sat"})


def test_all_of_the_extra_is_looked_for(plain: Environment, with_plugin: Environment) -> None:
    """What the plugin names is what the extra brings, and what the service's users lack."""
    brought = {
        name
        for name, dists in packages_distributions().items()
        if {canonicalize_name(each) for each in dists} & extra(with_plugin)
    }
    looked_for = {name.partition(".")[0] for name in NEEDED}
    assert looked_for <= brought
    assert len(NEEDED) == len(extra(with_plugin))
    for name in NEEDED:
        done = plain.run("python", "-c", f"import {name}", folder=plain.bin)
        assert "ModuleNotFoundError" in done.stderr


def extra(environment: Environment) -> set[str]:
    """The packages that the extra asks for; pytest is there already."""
    (ours,) = (each for each in environment.installed() if each.name == "ldfi")
    asked = [Requirement(each) for each in ours.requires or ()]
    found = {
        canonicalize_name(each.name)
        for each in asked
        if each.marker is not None and each.marker.evaluate({"extra": "pytest"})
    }
    return {str(name) for name in found} - {"pytest"}


def test_it_loads_and_nothing_but_itself(plain: Environment, tmp_path: Path) -> None:
    code = (
        "import sys, pytest\n"
        "before = set(sys.modules)\n"
        "import ldfi.explore.pytest.plugin\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = plain.run("python", "-c", code, folder=tmp_path)
    package = "ldfi.explore.pytest"
    assert done.stdout.split() == [
        "ldfi",
        "ldfi.explore",
        package,
        f"{package}.fixture",
        f"{package}.plugin",
        f"{package}.remote",
    ]


@pytest.mark.parametrize("options", [[], ["-k", "nothing"], ["--markers"], ["--fixtures"]])
def test_whoever_does_not_ask_for_it_is_let_be(
    plain: Environment, tmp_path: Path, options: list[str]
) -> None:
    done = run_on(plain, tmp_path, QUIET, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ldfi[pytest]" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("text", "options", "asks"),
    [
        (MARKED, (), "test_it.py::test_marked"),
        (WITH_FIXTURE, (), "test_it.py::test_with_fixture"),
        (QUIET, ("--ldfi-seed=0",), "--ldfi-seed"),
        (QUIET, ("--ldfi-report=report.json",), "--ldfi-report"),
        (MARKED, ("-n1",), "test_it.py::test_marked"),
    ],
    ids=["marker", "fixture", "seed", "report", "within xdist"],
)
def test_whoever_asks_for_it_is_told_what_to_install(
    plain: Environment, tmp_path: Path, text: str, options: tuple[str, ...], asks: str
) -> None:
    if "-n1" in options:
        plain.lend("pytest-xdist")
    done = run_on(plain, tmp_path, text, *options)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert f"{asks} asks for ldfi's plugin" in said
    assert HINT in said
    assert "passed" not in said
    if "-n1" not in options:
        assert done.returncode == pytest.ExitCode.USAGE_ERROR
        assert "Traceback" not in said


@pytest.mark.parametrize("text", [MARKED, WITH_FIXTURE], ids=["marker", "fixture"])
def test_the_extra_is_all_it_takes(with_plugin: Environment, tmp_path: Path, text: str) -> None:
    """No call is made that could fail, and that is what the plugin says after a run."""
    done = run_on(with_plugin, tmp_path, text)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert "no call was seen that could fail" in done.stdout
