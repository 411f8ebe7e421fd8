"""Nobody may import a room by the name it once had at the top level.

In a checkout the rooms lie at the top level, where ``import fit`` would find one: as another module
than ``ldfi.fit``, with state of its own, and only here. ``Watch`` stands before all other finders
and notes who asks for such a name; it finds nothing itself.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType, ModuleType

ROOT = Path(__file__).parents[1]
OLD_NAMES = frozenset({"fit", "lineage", "solver", "experiments", "dashboards", "demo", "testing"})


class Watch:
    """A finder that remembers where in the code an old name was imported first."""

    def __init__(self) -> None:
        self._who: dict[str, str] = {}

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Note who asks. One of importlib's hooks."""
        if name in OLD_NAMES:
            self._who.setdefault(name, _importer(sys._getframe(1)))
        return None

    def found(self) -> list[str]:
        """Name each old name that is a module of ours now, and who imported it."""
        return [
            f"{name} was imported by {self._who.get(name, 'somebody before the tests')}: "
            f"say `from ldfi import {name}`"
            for name in sorted(OLD_NAMES & set(sys.modules))
            if _is_ours(sys.modules[name])
        ]


def _is_ours(module: ModuleType) -> bool:
    """Whether it is a room; what a test made up, or another project's, is its own affair."""
    rooms = (ROOT / module.__name__, ROOT / "ldfi" / module.__name__)
    places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    return any(
        Path(place).resolve().is_relative_to(room.resolve())
        for place in places
        if place
        for room in rooms
    )


def _importer(frame: FrameType | None) -> str:
    """``file:line`` of the code that asked, past importlib's own frames."""
    while frame is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back
    return "nobody" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
