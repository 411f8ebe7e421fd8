"""The version number is one, and is written everywhere at once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from deploy.release.version import PLACES, ROOT, named, version, write


def test_every_place_has_the_version() -> None:
    assert {found for _, found in named()} == {version()}


def test_a_new_one_is_written_in_every_place(tmp_path: Path) -> None:
    for name in PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    places = len(list(named()))
    write("9.8.7rc1", tmp_path)
    assert [found for _, found in named(tmp_path)] == ["9.8.7rc1"] * places
    write(version(), tmp_path)
    assert all((tmp_path / each).read_text() == (ROOT / each).read_text() for each in PLACES)
    with pytest.raises(ValueError, match=r"got '9\.8'"):
        write("9.8", tmp_path)
