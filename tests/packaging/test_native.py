"""The decoder in Rust is a distribution of its own, of the same version as ldfi."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "ldfi" / "lineage" / "native"


def described(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def test_both_have_one_version_and_the_extra_asks_for_just_that() -> None:
    project = described(ROOT / "pyproject.toml")["project"]
    version = project["version"]
    assert described(NATIVE / "Cargo.toml")["package"]["version"] == version
    assert f"ldfi-native=={version}" in project["optional-dependencies"]["native"]


def test_nothing_that_everybody_installs_asks_for_it() -> None:
    project = described(ROOT / "pyproject.toml")["project"]
    asking = {
        name
        for name, lines in project["optional-dependencies"].items()
        if any("native" in line for line in lines)
    }
    assert asking == {"native"}


def test_it_is_built_from_what_the_lock_names() -> None:
    assert described(NATIVE / "pyproject.toml")["tool"]["maturin"]["locked"] is True
    locked = described(NATIVE / "Cargo.lock")["package"]
    others = [each for each in locked if each["name"] != "ldfi-native"]
    assert others
    assert all("checksum" in each for each in others)


def test_no_code_of_ours_may_be_unsafe() -> None:
    lints = described(NATIVE / "Cargo.toml")["lints"]["rust"]
    assert lints["unsafe_code"] == "forbid"
