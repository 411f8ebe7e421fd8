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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ldfi.experiments.elsewhere.code import Unmapped, code_digest, files_below, files_digest
from ldfi.experiments.pytest_plugin.away import names_of, services_started
from ldfi.experiments.pytest_plugin.bounds import Bounds
from ldfi.experiments.pytest_plugin.service import service_name
from ldfi.experiments.pytest_plugin.survived import Basis

if TYPE_CHECKING:
    import pytest

_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})


def lessons_file(folder: Path, test: str) -> Path:
    """Say where the runs of a test are kept."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", test.rpartition("::")[2]).strip("-")[:60]
    return folder / f"{words}-{hashlib.sha256(test.encode()).hexdigest()[:12]}.json"


def read_lessons(path: Path) -> object:
    """Read what was kept; None where that is nothing that can be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def keep_lessons(path: Path, document: Mapping[str, Any] | None) -> str:
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


def basis_of_test(item: pytest.Item, bounds: Bounds) -> Basis:
    """Say what the survived runs of a test rest on, when its fixtures have started services."""
    services = services_started(item.config)
    if services is None:
        return Basis(lacking="it uses no services of ldfi_services, so no code of any is declared")
    try:
        tested = files_digest(_tested(item), item.config.rootpath)
    except Unmapped as error:
        return Basis(lacking=str(error))
    unmapped = services.unmapped
    digests = {name: each for name, each in services.digests.items() if name not in unmapped}
    key = _key(item.nodeid, bounds, tested, digests)
    return Basis(key, frozenset(digests), dict(unmapped), dict(names_of(item.config)))


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
    key = _key(json.dumps([*command, *asked]), bounds, digests[""], digests)
    return Basis(key, frozenset(digests) - {""}, None, dict(names))


def _key(test: str, bounds: Bounds, tested: str, digests: Mapping[str, str]) -> str:
    about = [version("ldfi"), platform.python_version(), service_name()]
    said = [*about, test, asdict(bounds), tested, sorted(digests.items())]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _tested(item: pytest.Item) -> Iterable[Path]:
    """List the files of a test: its folder, the fixtures above it, what is imported besides."""
    root, folder = item.config.rootpath, item.path.parent
    yield from files_below(folder)
    for above in folder.parents:
        if above.is_relative_to(root) and (above / "conftest.py").is_file():
            yield above / "conftest.py"
    yield from _imported(root)


def _imported(root: Path) -> Iterator[Path]:
    for module in list(sys.modules.values()):
        file = Path(getattr(module, "__file__", None) or "")
        if file.is_relative_to(root) and file.is_file() and _INSTALLED.isdisjoint(file.parts):
            yield file
