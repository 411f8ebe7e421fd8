"""Where survived runs are kept, one file for each test, and what they rest on.

The hash covers the test (its folder, every ``conftest.py`` above it, whatever else of the project
is imported), its bounds, how each service was declared, the versions of ldfi and Python.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ldfi.explore.external.code import Unmapped, code_digest, files_below, files_digests
from ldfi.explore.pytest.evidence import SUFFIX
from ldfi.explore.pytest.marker import Bounds
from ldfi.explore.pytest.service import service_name
from ldfi.explore.pytest.survived import Basis

if TYPE_CHECKING:
    import pytest

    from ldfi.explore.external.services import Services


def survived_file(folder: Path, test: str) -> Path:
    """Return where the runs of a test are kept."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", test.rpartition("::")[2]).strip("-")[:60]
    return folder / f"{words}-{hashlib.sha256(test.encode()).hexdigest()[:12]}.json"


def read_survived(path: Path) -> object:
    """Return what was kept; None if it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def keep_survived(path: Path, document: Mapping[str, Any] | None) -> str:
    """Keep it, whole or not at all; where there is nothing to keep, what was kept stays. Say why it
    cannot be written; empty where it can."""
    if document is None:
        return ""
    beside = path.with_suffix(".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(json.dumps(document) + "\n", encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        return f"{path} cannot be written: {error.strerror or error}"
    return ""


def basis_of_test(item: pytest.Item, bounds: Bounds, services: Services | None) -> Basis:
    """Return what the survived runs of a test rest on. ``services``: those that its fixtures have
    started, if any."""
    if services is None:
        return Basis(lacking="it uses no services of ldfi_services, so no code of any is declared")
    try:
        files = files_digests(files_tested(item), item.config.rootpath)
    except Unmapped as error:
        return Basis(lacking=str(error))
    unmapped = services.unmapped
    digests = {name: each for name, each in services.digests.items() if name not in unmapped}
    tested = {f"file {name}": digest for name, digest in files.items()}
    parts = _parts("test", item.nodeid, bounds, tested, digests)
    named = dict(services.names)
    return Basis(_key(parts), frozenset(digests), dict(unmapped), named, parts=parts)


def basis_of_command(
    command: Sequence[str],
    asked: Sequence[str],
    bounds: Bounds,
    code: Mapping[str, Sequence[str]],
    names: Mapping[str, str],
) -> Basis:
    """Say the same of a command. ``asked``: what else was typed that the outcome depends on.
    ``code``: what each service is made of, and under the empty name the test."""
    if not code.get(""):
        return Basis(lacking="the test's own code is not declared: --code PATH")
    try:
        digests = {name: code_digest(each, Path()) for name, each in code.items()}
    except Unmapped as error:
        return Basis(lacking=str(error))
    typed, tested = json.dumps([*command, *asked]), {"code of the test": digests.pop("")}
    parts = _parts("command", typed, bounds, tested, digests)
    return Basis(_key(parts), frozenset(digests), None, dict(names), parts=parts)


def _parts(
    what: str, test: str, bounds: Bounds, tested: Mapping[str, str], digests: Mapping[str, str]
) -> dict[str, str]:
    """Hash everything that survived runs rest on, each by itself, under the name by which it is
    said that it has changed."""
    parts = {
        "ldfi": version("ldfi"),
        "Python": platform.python_version(),
        "OTEL_SERVICE_NAME": service_name(),
        "marker or seed": json.dumps(asdict(bounds)),
        what: test,
        **tested,
        **{f"service {name}": digest for name, digest in digests.items()},
    }
    return {_told(name): hashlib.sha256(each.encode()).hexdigest() for name, each in parts.items()}


def _key(parts: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(sorted(parts.items())).encode()).hexdigest()


def _told(name: str) -> str:
    """Name a part so that it can be written whatever bytes a file's name has; no two names become
    one."""
    return (
        name.replace("\\", "\\\\")
        .encode(errors="surrogateescape")
        .decode(errors="backslashreplace")
    )


# Which files a test is made of. What its sessions write may lie beside it, and is none of them.

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
