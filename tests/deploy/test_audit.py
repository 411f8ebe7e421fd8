"""What `make audit` makes of pip-audit's answer. Its advisories cannot be asked for in a test."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.servers

ROOT = Path(__file__).parents[2]
AUDIT = ROOT / ".ci" / "audit.py"
CLEAN = {"name": "good", "version": "1", "vulns": []}
UNKNOWN = {"name": "odd", "version": "1", "skip_reason": "not found"}
WEAK = {
    "name": "weak",
    "version": "1",
    "vulns": [{"id": "CVE-1", "fix_versions": ["2"], "aliases": [], "description": ""}],
}


def audited(folder: Path, answer: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "pip_audit.py").write_text(f"print({answer!r})")
    return subprocess.run(
        [sys.executable, AUDIT, *words],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("packages", "status", "said"),
    [
        ([CLEAN, WEAK], 1, "weak 1: CVE-1, fixed in 2\n2 of 2 packages audited"),
        ([CLEAN, UNKNOWN], 0, "not audited: odd\n1 of 2 packages audited, 0 known"),
        ([UNKNOWN, UNKNOWN], 3, "NOT AUDITED"),
        ([], 3, "NOT AUDITED"),
    ],
)
def test_an_audit_never_passes_in_silence(
    packages: list[object], status: int, said: str, tmp_path: Path
) -> None:
    done = audited(tmp_path, json.dumps({"dependencies": packages, "fixes": []}))
    assert done.returncode == status
    assert said in done.stdout


@pytest.mark.parametrize("answer", ["no network", "{}", ""])
def test_whoever_cannot_look_does_not_pass(answer: str, tmp_path: Path) -> None:
    done = audited(tmp_path, answer)
    assert done.returncode == 3
    assert "NOT AUDITED" in done.stdout


def test_it_passes_unaudited_only_where_that_is_allowed_and_says_so(tmp_path: Path) -> None:
    done = audited(tmp_path, "no network", "--allow-unreachable")
    assert done.returncode == 0
    assert "NOT AUDITED" in done.stdout
    assert "--allow-unreachable lets that pass" in done.stdout


def test_nothing_allows_a_known_vulnerability(tmp_path: Path) -> None:
    answer = json.dumps({"dependencies": [WEAK], "fixes": []})
    done = audited(tmp_path, answer, "--allow-unreachable")
    assert done.returncode == 1
    assert "lets that pass" not in done.stdout


@pytest.mark.parametrize("target", ["audit", "check", "dist"])
@pytest.mark.parametrize("allowed", [True, False])
def test_make_allows_it_only_where_it_is_told_to(target: str, allowed: bool) -> None:
    """What make would run, without running it."""
    words = ["make", "--dry-run", target, *(["UNAUDITED=allow"] if allowed else [])]
    told = {"UNAUDITED", "MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS"}  # of a make that runs these tests
    env = {name: value for name, value in os.environ.items() if name not in told}
    said = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    (audit,) = re.findall(r"\.ci/audit\.py.*", said.stdout)
    assert ("--allow-unreachable" in audit) == allowed
