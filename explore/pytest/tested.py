"""Which files a test is made of. What its sessions write may lie beside it, and is none of them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ldfi.explore.external.code import files_below
from ldfi.explore.pytest.evidence import SUFFIX

if TYPE_CHECKING:
    import pytest

_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
_KEPT = re.compile(r".*-[0-9a-f]{12}\.(json|new)")
_SCENARIO = re.compile(r".*-[0-9a-f]{12}\.yaml")


def files_tested(item: pytest.Item) -> Iterator[Path]:
    """List the files of a test: its folder, the fixtures above it, what is imported besides. Raises
    Unmapped."""
    root, folder = item.config.rootpath, item.path.parent
    written = _Written(item.config)
    yield from (file for file in files_below(folder) if not written.has(file))
    for above in folder.parents:
        if above.is_relative_to(root) and (above / "conftest.py").is_file():
            yield above / "conftest.py"
    yield from _imported(root)


def _imported(root: Path) -> Iterator[Path]:
    for module in list(sys.modules.values()):
        file = Path(getattr(module, "__file__", None) or "")
        if file.is_relative_to(root) and file.is_file() and _INSTALLED.isdisjoint(file.parts):
            yield file


class _Written:
    """What this session writes, as its options say: files by their names, since the folder that
    somebody gives us may be the test's own."""

    def __init__(self, config: pytest.Config) -> None:
        def given(option: str) -> Path | None:
            where = config.getoption(option, None)
            return (config.invocation_params.dir / where).resolve() if where else None

        report, self._survived_folder = given("--ldfi-report"), given("--ldfi-lessons")
        self._scenarios = report and report.parent
        reports = [report.with_suffix(each) for each in (".md", SUFFIX)] if report else []
        self._files = {report, *reports, given("xmlpath"), given("log_file")}

    def has(self, file: Path) -> bool:
        """Return whether it is one of these."""
        at = file.resolve()
        return (
            at in self._files
            or (at.parent == self._survived_folder and _KEPT.fullmatch(at.name) is not None)
            or (at.parent == self._scenarios and _SCENARIO.fullmatch(at.name) is not None)
        )
