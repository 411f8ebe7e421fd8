"""The session fails where a room was imported by its old name: in this process and in workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
CONFTEST = "from tests.conftest import *\n"


def session(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(text)
    words = ["-m", "pytest", "-p", "no:cacheprovider", f"--rootdir={folder}", "-c", "/dev/null"]
    return subprocess.run(
        [sys.executable, *words, *options, str(folder)],
        cwd=ROOT,  # python -m pytest puts this on the path, and so the rooms
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n1")], ids=["alone", "within xdist"])
def test_who_imports_a_room_by_its_old_name_fails_the_session(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    done = session(tmp_path, "def test_it():\n    import solver\n", *options)
    assert "1 passed" in done.stdout
    assert f"solver was imported by {tmp_path / 'test_it.py'}:2" in done.stdout
    assert done.returncode == pytest.ExitCode.TESTS_FAILED


def test_a_package_of_somebody_elses_by_that_name_is_let_be(tmp_path: Path) -> None:
    (tmp_path / "theirs" / "demo").mkdir(parents=True)
    (tmp_path / "theirs" / "demo" / "__init__.py").touch()
    path = str(tmp_path / "theirs")
    text = f"import sys\ndef test_it():\n    sys.path.insert(0, {path!r})\n    import demo\n"
    done = session(tmp_path, text)
    assert done.returncode == 0, done.stdout
