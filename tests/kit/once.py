"""Files that take long to make: made once for all workers, then copied."""

from __future__ import annotations

import fcntl
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

Made = TypeVar("Made")


def once(
    factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Made]
) -> tuple[Path, Made]:
    """Return a file and what ``make`` said of it; only the first worker that asks makes it."""
    folder = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    file, said = folder / f"{name}.made", folder / f"{name}.said"
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not said.exists():
            file.unlink(missing_ok=True)
            said.write_bytes(pickle.dumps(make(file)))
    found: Made = pickle.loads(said.read_bytes())  # noqa: S301 - we wrote it
    return file, found
