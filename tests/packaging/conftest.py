"""What is published, built once: the sdist from the checkout, and the wheel from that sdist."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.environments import Environment

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both files, built as ``make dist`` does."""
    folder = tmp_path_factory.mktemp("dist")
    words = ["-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    """The wheel."""
    (found,) = dist.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def sdist(dist: Path) -> Path:
    """The sdist."""
    (found,) = dist.glob("*.tar.gz")
    return found


@pytest.fixture(scope="session")
def plain(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """A project that uses ``fit`` and has tests: ``pip install ldfi pytest``."""
    made = Environment(tmp_path_factory.mktemp("plain") / "env")
    made.install(wheel)
    made.lend("ldfi", "pytest")
    return made


@pytest.fixture(scope="session")
def with_plugin(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """A project that explores its tests: ``pip install 'ldfi[pytest]'``."""
    made = Environment(tmp_path_factory.mktemp("with-plugin") / "env")
    made.install(wheel)
    made.lend("ldfi[pytest]")
    return made


@pytest.fixture(scope="session")
def service(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Whoever runs the service: ``pip install 'ldfi[service]'``."""
    made = Environment(tmp_path_factory.mktemp("service") / "env")
    made.install(wheel)
    made.lend("ldfi[service]")
    return made
