"""Environments of their own, made in a second: a wheel that pip installed, and what it is lent.

Dependencies are not fetched. They are linked, file by file, from the environment that runs the
tests: exactly those that the wheel's metadata asks for, and what these ask for in turn. So whatever
an extra forgets to name is missing there as it would be missing for a user.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name


class Environment:
    """A virtual environment in a folder. ``site``: where its packages are."""

    def __init__(self, folder: Path) -> None:
        """Make it; nothing is in it, not even pip."""
        venv.create(folder, symlinks=True)
        self.bin = folder / "bin"
        self.site = next(folder.glob("lib/python*/site-packages"))

    def install(self, *what: Path | str) -> None:
        """Install with pip, without dependencies. Raises CalledProcessError."""
        words = ["install", "--quiet", "--no-deps", "--no-compile", *map(str, what)]
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python")]
        subprocess.run([*pip, *words], check=True, capture_output=True, text=True)

    def lend(self, *requirements: str) -> None:
        """Link what these ask for, which may be extras of what is installed here."""
        ours = {canonicalize_name(each.name): each for each in self.installed()}
        for wanted in _closure(requirements, ours):
            self._link(wanted)

    def installed(self) -> Iterator[Distribution]:
        """Find the distributions that are here."""
        return iter(distributions(path=[str(self.site)]))

    def run(
        self, *words: str, folder: Path, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of this environment in a folder; nothing of ours is on its path."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "PYTEST", "LDFI", "FIT", "OTEL"))
        }
        return subprocess.run(
            [str(self.bin / words[0]), *words[1:]],
            cwd=folder,
            env={**kept, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def _link(self, lent: Distribution) -> None:
        for file in lent.files or ():
            target = self.site / file
            if ".." in file.parts or target.exists():
                continue  # scripts, which would start the other interpreter
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(Path(str(lent.locate_file(file))).resolve())


def _closure(
    requirements: tuple[str, ...], ours: Mapping[NormalizedName, Distribution]
) -> list[Distribution]:
    """All that these ask for, directly or not; of ``ours`` only what they ask for."""
    open_ = [Requirement(each) for each in requirements]
    found: dict[NormalizedName, Distribution] = {}
    done = set[tuple[str, str]]()
    while open_:
        wanted = open_.pop()
        name = canonicalize_name(wanted.name)
        asked = {(name, extra) for extra in wanted.extras or {""}} - done
        done |= asked
        if not asked:
            continue
        its = ours.get(name) or distribution(name)
        if name not in ours:
            found[name] = its
        extras = {extra for _, extra in asked} | {""}
        open_ += [
            each
            for each in map(Requirement, its.requires or ())
            if each.marker is None or any(each.marker.evaluate({"extra": e}) for e in extras)
        ]
    return list(found.values())
