"""What is in the wheel and in the sdist: all that is needed, and nothing in anybody's way."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
ROOMS = sorted(path.parent.name for path in (ROOT / "ldfi").glob("*/__init__.py"))
LEFT_OUT = (
    "ldfi/fit/go/",
    "ldfi/fit/java/",
    "ldfi/fit/js/",
    "ldfi/fit/protocol/vectors/",
    "ldfi/lineage/native/",
)
"""For other languages, and for tests."""


def shipped() -> set[str]:
    """The files of the package in this checkout."""
    found = set()
    for top in ["", *ROOMS]:
        folder = ROOT / "ldfi" / top
        files = folder.rglob("*") if top else folder.glob("*")
        found |= {path.relative_to(ROOT).as_posix() for path in files if path.is_file()}
    return {name for name in found if "__pycache__" not in name}


def names(wheel: Path) -> set[str]:
    return set(ZipFile(wheel).namelist())


def in_sdist(sdist: Path) -> list[tarfile.TarInfo]:
    with tarfile.open(sdist) as archive:
        return archive.getmembers()


def test_the_wheel_takes_one_name_and_no_other(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in names(wheel)}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"ldfi"}
    assert len(tops) == 2


def test_the_wheel_holds_every_file_of_the_rooms(wheel: Path) -> None:
    wanted = {name for name in shipped() if not name.startswith(LEFT_OUT)}
    assert {name for name in names(wheel) if name.startswith("ldfi/")} == wanted
    assert len(ROOMS) >= 6


@pytest.mark.parametrize(
    "file",
    [
        "py.typed",
        "dashboards/templates/base.html",
        "dashboards/now/now.html",
        "dashboards/static/style.css",
        "dashboards/static/vendor/htmx.org/htmx.min.js.gz",
        "demo/weaknesses.json",
        "experiments/store/migrations/script.py.mako",
        "experiments/store/migrations/env.py",
    ],
)
def test_the_wheel_holds_what_is_no_code(wheel: Path, file: str) -> None:
    assert f"ldfi/{file}" in names(wheel)


def test_every_licence_is_in_the_wheel(wheel: Path) -> None:
    held = {name.partition(".dist-info/licenses/")[2] for name in names(wheel)} - {""}
    vendored = {name for name in shipped() if "/vendor/" in name and "LICENSE" in name}
    assert held == {"LICENSE"} | vendored
    assert len(vendored) >= 5


def test_the_metadata_says_where_the_project_lives(wheel: Path) -> None:
    (name,) = [name for name in names(wheel) if name.endswith(".dist-info/METADATA")]
    said = Parser().parsestr(ZipFile(wheel).read(name).decode())
    urls = dict(each.split(", ") for each in said.get_all("Project-URL", []))
    assert set(urls) == {"Homepage", "Source", "Issues", "Changelog", "Documentation"}
    assert all(url.startswith(urls["Source"]) for url in urls.values())
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## {said['Version']} (" in changes


def test_there_are_no_links_in_the_sdist(sdist: Path) -> None:
    members = in_sdist(sdist)
    assert [each.name for each in members if not (each.isfile() or each.isdir())] == []
    tops = {each.name.split("/")[1] for each in members}
    assert not tops & set(ROOMS)


def test_the_sdist_holds_every_file_of_the_repository(sdist: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no repository: the files of the sdist have nothing to be held against")
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [ROOT / line for line in said.splitlines()]
    listed = {path.relative_to(ROOT).as_posix() for path in files if path.is_file()}
    wanted = {f"ldfi/{name}" if name.partition("/")[0] in ROOMS else name for name in listed}
    held = {each.name.partition("/")[2] for each in in_sdist(sdist) if each.isfile()}
    assert held - {"PKG-INFO"} == wanted


def built(source: Path, folder: Path) -> bytes:
    words = ["-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
    subprocess.run([sys.executable, *words], capture_output=True, check=True)
    (found,) = folder.glob("*.whl")
    return found.read_bytes()


def test_a_checkout_and_its_sdist_give_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """The fixture's wheel was built from the sdist."""
    assert built(ROOT, tmp_path) == wheel.read_bytes()


def test_what_docker_is_given_gives_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    context = tmp_path / "context"
    context.mkdir()
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        source = ROOT / line.removeprefix("!")
        if line.startswith("!") and source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, context / source.name, symlinks=True, ignore=ignored)
        elif line.startswith("!"):
            shutil.copy(source, context)
    assert built(context, tmp_path / "dist") == wheel.read_bytes()
