"""The reader in JavaScript: its own tests, what is published, and the real Express."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.kit import needs

pytestmark = pytest.mark.languages

ROOT = Path(__file__).parents[2]
JS = ROOT / "ldfi" / "fit" / "js"
HERE = Path(__file__).parent / "js"


@pytest.fixture
def node() -> str:
    found = needs.program("node")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
    major, minor = version.stdout.strip().lstrip("v").split(".")[:2]
    if (int(major), int(minor)) < (20, 19):
        needs.lacking(f"node is {version.stdout.strip()}, not 20.19 or newer")
    return found


def run_tests(node: str, files: list[Path], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FIT_")}
    return subprocess.run(
        [node, "--test", *map(str, files)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_the_readers_own_tests_pass(node: str) -> None:
    files = sorted((JS / "test").glob("*.test.js"))

    done = run_tests(node, files, JS)

    assert len(files) == 10
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_published_is_the_reader_and_nothing_else() -> None:
    words = [needs.program("npm"), "pack", "--dry-run", "--json", "--offline"]
    done = subprocess.run(words, cwd=JS, capture_output=True, text=True, timeout=60, check=True)
    answer = json.loads(done.stdout)  # a list, or from npm 11 on by name
    (packed,) = answer.values() if isinstance(answer, dict) else answer

    code = {path.name for ending in ("*.js", "*.d.ts") for path in JS.glob(ending)}
    assert {each["path"] for each in packed["files"]} == code | {
        "LICENSE",
        "README.md",
        "kinds.json",
        "package.json",
    }
    assert packed["id"] == f"ldfi-fit@{project()['version']}"
    assert (JS / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_package_says_the_same_as_the_project() -> None:
    package = json.loads((JS / "package.json").read_text(encoding="utf-8"))
    source = project()["urls"]["Source"]
    assert package["version"] == project()["version"]
    assert package["repository"]["url"] == f"git+{source}.git"
    assert package["bugs"] == project()["urls"]["Issues"]
    assert package["homepage"].startswith(source)
    assert source in (JS / "README.md").read_text(encoding="utf-8")
    assert "private" not in package


def project() -> dict[str, Any]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    described: dict[str, Any] = tomllib.loads(text)["project"]
    return described


def test_with_the_real_express_and_the_real_opentelemetry(node: str, tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    packages = ["express@5", "@opentelemetry/api@1", "@opentelemetry/sdk-trace-base@2"]
    options = ["--prefer-offline", "--no-audit", "--no-fund", "--no-package-lock"]
    try:
        subprocess.run(
            [needs.program("npm"), "install", *options, *packages],
            cwd=tmp_path,
            capture_output=True,
            timeout=60,
            check=True,
        )
    except subprocess.SubprocessError:
        needs.lacking("npm cannot install Express and OpenTelemetry here")
    here = tmp_path / "node_modules" / "ldfi-fit"
    shutil.copytree(JS, here, ignore=shutil.ignore_patterns("test", "node_modules"))
    sign = (JS / "test" / "support" / "sign.js").read_text(encoding="utf-8")
    (tmp_path / "sign.js").write_text(sign.replace("../../points.js", "ldfi-fit"))
    test = shutil.copy(HERE / "express_otel.test.mjs", tmp_path)

    done = run_tests(node, [Path(test)], tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
