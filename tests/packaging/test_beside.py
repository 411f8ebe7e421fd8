"""In other people's environments: their own packages stay theirs, whatever these are called."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.kit import needs
from tests.packaging.environments import Environment

pytestmark = pytest.mark.long

OLD_NAMES = ("fit", "lineage", "solver", "experiments", "dashboards", "demo")
"""What our packages were called at the top level once, as other people's are."""
TEST = f"""
import importlib
import sys

import pytest

@pytest.mark.parametrize("name", {OLD_NAMES!r})
def test_it_is_our_own(name):
    assert importlib.import_module(name).OWN

def test_theirs_is_beside_it():
    from ldfi import fit
    assert not hasattr(fit, "OWN")
    assert fit.__name__ == "ldfi.fit"
    assert "ldfi.explore.pytest.plugin" in sys.modules
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with packages of all these names."""
    for name in OLD_NAMES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("OWN = True\n")
    (tmp_path / "test_own.py").write_text(TEST)
    return tmp_path


@pytest.mark.parametrize("environment", ["plain", "with_plugin"])
def test_a_project_with_packages_of_our_old_names_is_tested_as_ever(
    environment: str, project: Path, request: pytest.FixtureRequest
) -> None:
    done = request.getfixturevalue(environment).run(
        "python", "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", folder=project
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "7 passed" in done.stdout


def test_the_command_line_works_within_such_a_project(service: Environment, project: Path) -> None:
    """With the project on the path, as whoever sets PYTHONPATH has it."""
    done = service.run("ldfi", "--help", folder=project, PYTHONPATH=str(project))
    assert done.returncode == 0, done.stderr
    assert "campaign" in done.stdout


@pytest.mark.parametrize("module", OLD_NAMES)
def test_nothing_of_ours_answers_to_an_old_name(
    plain: Environment, module: str, tmp_path: Path
) -> None:
    done = plain.run("python", "-c", f"import {module}", folder=tmp_path)
    assert f"No module named '{module}'" in done.stderr


def test_beside_another_package_that_is_called_lineage(wheel: Path, tmp_path: Path) -> None:
    """PyPI has one, for genealogists; neither may take a file of the other."""
    both = Environment(tmp_path / "env")
    try:
        both.install("lineage==4.5.0")
    except subprocess.CalledProcessError as error:
        needs.lacking(f"the package lineage cannot be had without a network: {error.stderr}")
    before = {path: path.read_bytes() for path in both.site.rglob("*") if path.is_file()}

    both.install(wheel)
    both.lend("ldfi")

    assert all(path.read_bytes() == held for path, held in before.items())
    files = [{str(file) for file in each.files or ()} for each in both.installed()]
    assert sum(map(len, files)) == len(set().union(*files))
    code = (
        "import importlib.util, ldfi.lineage.lineage as ours;"
        "theirs = importlib.util.find_spec('lineage').origin;"
        "print(theirs, ours.__file__, sep='\\n')"
    )
    done = both.run("python", "-c", code, folder=tmp_path)
    found = [Path(line).relative_to(both.site).as_posix() for line in done.stdout.split()]
    assert found == ["lineage/__init__.py", "ldfi/lineage/lineage.py"]
