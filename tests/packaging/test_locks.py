"""The lock files: they hold what pyproject.toml asks for, each with hashes, and tell no secrets."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
LOCKS = {
    "ci.lock": ("dev", "audit"),
    "image.lock": ("demo", "grpc", "kafka", "signing"),
    "build.lock": ("build",),
}
_PINNED = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>\S+)(?: ; .*?)? \\$", re.M)
_PYTHONS = ("3.11.0", "3.11.9", "3.12.0", "3.13.0")


def text(lock: str) -> str:
    return (ROOT / "requirements" / lock).read_text(encoding="utf-8")


def project() -> dict[str, Any]:
    described: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return described["project"]  # type: ignore[no-any-return]


def asked_for(extras: tuple[str, ...]) -> list[Requirement]:
    """What a plain install and these extras name, our own extras followed."""
    optional = project()["optional-dependencies"]
    lines = list(project()["dependencies"])
    open_, done = list(extras), set[str]()
    while open_:
        extra = open_.pop()
        if extra in done:
            continue
        done.add(extra)
        for each in map(Requirement, optional[extra]):
            if each.name == "ldfi":
                open_ += each.extras
            else:
                lines.append(str(each))
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_holds_what_is_asked_for(lock: str) -> None:
    """Where this fails: make lock."""
    pinned: dict[str, list[Version]] = {}
    for found in _PINNED.finditer(text(lock)):
        pinned.setdefault(canonicalize_name(found["name"]), []).append(Version(found["version"]))
    for wanted in asked_for(LOCKS[lock]):
        versions = pinned.get(canonicalize_name(wanted.name), [])
        assert versions, f"{wanted.name} is not in requirements/{lock}: make lock"
        unfit = [str(v) for v in versions if not wanted.specifier.contains(v, prereleases=True)]
        assert unfit == [], f"{wanted} does not allow what requirements/{lock} has: make lock"


@pytest.mark.parametrize("lock", LOCKS)
def test_on_every_python_there_is_one_version_of_each(lock: str) -> None:
    lines = re.findall(r"^([\w.-]+==[^\\\n]+?) \\$", text(lock), re.M)
    assert len(lines) == len(_PINNED.findall(text(lock))) > 5
    for python in _PYTHONS:
        short = python.rpartition(".")[0]
        about = {"python_full_version": python, "python_version": short, "sys_platform": "linux"}
        held = [
            canonicalize_name(each.name)
            for each in map(Requirement, lines)
            if each.marker is None or each.marker.evaluate(about)
        ]
        assert len(held) == len(set(held))


@pytest.mark.parametrize("lock", LOCKS)
def test_everything_has_hashes_and_nothing_comes_from_a_place_of_its_own(lock: str) -> None:
    blocks = re.split(r"^(?=[\w])", text(lock), flags=re.M)[1:]
    assert blocks
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in text(lock)
    assert not re.search(r"^ *(-i|-f|-e|--index|--extra-index|--find-links)", text(lock), re.M)
    assert " @ " not in text(lock)


def test_the_build_backend_is_in_the_lock_of_who_builds() -> None:
    described = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (backend,) = map(Requirement, described["build-system"]["requires"])
    for lock in ("build.lock", "ci.lock"):
        pinned = {canonicalize_name(found["name"]): found for found in _PINNED.finditer(text(lock))}
        assert backend.specifier.contains(pinned[canonicalize_name(backend.name)]["version"])
