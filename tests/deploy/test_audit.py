"""What `make audit` makes of pip-audit's answer. Its advisories cannot be asked for in a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

AUDIT = Path(__file__).parents[2] / ".ci" / "audit.py"
CLEAN = {"name": "good", "version": "1", "vulns": []}
UNKNOWN = {"name": "odd", "version": "1", "skip_reason": "not found"}
WEAK = {
    "name": "weak",
    "version": "1",
    "vulns": [{"id": "CVE-1", "fix_versions": ["2"], "aliases": [], "description": ""}],
}


def audited(folder: Path, answer: str) -> subprocess.CompletedProcess[str]:
    (folder / "pip_audit.py").write_text(f"print({answer!r})")
    return subprocess.run(
        [sys.executable, AUDIT],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("packages", "status", "said"),
    [
        ([CLEAN, WEAK], 1, "weak 1: CVE-1, fixed in 2\n2 of 2 packages audited"),
        ([CLEAN, UNKNOWN], 0, "1 of 2 packages audited, 0 known"),
        ([UNKNOWN, UNKNOWN], 0, "NOT AUDITED"),
    ],
)
def test_an_audit_never_passes_in_silence(
    packages: list[object], status: int, said: str, tmp_path: Path
) -> None:
    done = audited(tmp_path, json.dumps({"dependencies": packages, "fixes": []}))
    assert done.returncode == status
    assert said in done.stdout


def test_an_answer_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    done = audited(tmp_path, "no network")
    assert done.returncode == 0
    assert "NOT AUDITED" in done.stdout
