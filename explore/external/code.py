"""What a service is made of, in one hash: so that one sees whether anything of it has changed."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from ldfi.errors import Invalid

SKIPPED: Final = frozenset(
    {
        *(".git", ".ldfi", ".venv", "node_modules", "__pycache__"),
        *(".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache", "htmlcov"),
    }
)
"""Folders that are left out: made by machines. What is installed, a lock file stands for."""

_COUNTED = re.compile(r"\.coverage(\..+)?|coverage\.xml")
"""Files that are left out for the same reason: what coverage.py has counted."""

_IMAGE = re.compile(r"(?:\S+@)?sha256:[0-9a-f]{64}")


class Unmapped(Invalid):
    """Raised for code of which no hash can be made; the message says why."""


def code_digest(code: Iterable[str | Path], folder: Path) -> str:
    """Hash what a service was declared to be: files and folders (relative to ``folder``), and
    digests of images (``sha256:…``, with a name and ``@`` before it or without). Raises Unmapped.
    """
    hashed = hashlib.sha256()
    for each in sorted({str(part) for part in code}):
        _add(hashed, each)
        if _IMAGE.fullmatch(each) is None:
            for file in files_below(folder / each):
                _add(hashed, os.path.relpath(file, folder), _contents(file))
    return hashed.hexdigest()


def files_digests(files: Iterable[Path], folder: Path) -> dict[str, str]:
    """Hash files, each by itself, by their places in ``folder``. Raises Unmapped."""
    return {os.path.relpath(file, folder): _contents(file).hex() for file in set(files)}


def files_below(path: Path) -> list[Path]:
    """List the files of a folder, or the one that is meant. Raises Unmapped where there is none,
    and where something of it cannot be looked at."""
    try:
        path.lstat()
        found = sorted(_walked(path)) if path.is_dir() else [path]
    except FileNotFoundError:
        found = []
    except OSError as error:
        raise _unreadable(path, error) from error
    if not found:
        raise Unmapped(f"there is nothing at {path}")
    return found


def _walked(folder: Path) -> Iterator[Path]:
    """Walk through a folder. Raises OSError: what were left out could be what has changed."""
    for above, folders, files in os.walk(folder, onerror=_raise):
        folders[:] = [each for each in folders if each not in SKIPPED]
        for name in folders:
            if (Path(above) / name).is_symlink():
                raise Unmapped(f"{Path(above) / name} is a link to a folder; name that folder")
        yield from (Path(above) / name for name in files if not _COUNTED.fullmatch(name))


def _raise(error: OSError) -> None:
    raise error


def _contents(file: Path) -> bytes:
    """Hash a file, and whether it can be run. Raises Unmapped, also for what is no file: whoever
    opens a pipe waits for its writer, and a device may never end."""
    try:
        mode = file.stat().st_mode
        if not stat.S_ISREG(mode):
            raise Unmapped(f"{file} is neither a file nor a folder")
        hashed = hashlib.sha256(file.read_bytes())
    except OSError as error:
        raise _unreadable(file, error) from error
    _add(hashed, "x" if mode & stat.S_IXUSR else "-")
    return hashed.digest()


def _unreadable(path: Path, error: OSError) -> Unmapped:
    return Unmapped(f"{path} cannot be read: {error}")


def _add(hashed: hashlib._Hash, *parts: str | bytes) -> None:
    """Add parts, each with its length: no two lists of them are the same text."""
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        hashed.update(len(data).to_bytes(8, "big") + data)
