"""A small disk of our own, which can be full: memory that is mounted. Only root can."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.stack.missing import Missing

BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Disk:
    """``folder``: where it is mounted."""

    folder: Path

    @contextmanager
    def full(self) -> Iterator[None]:
        """Leave no room for as long as the block lasts."""
        ballast = self.folder / "ballast"
        size = BLOCK
        with ballast.open("wb", buffering=0) as file:
            while size:
                try:
                    file.write(b"\0" * size)
                except OSError:
                    size //= 2
        try:
            yield
        finally:
            ballast.unlink()


@contextmanager
def mounted(megabytes: int) -> Iterator[Disk]:
    """Mount one for as long as the block lasts. Raises Missing."""
    folder = Path(tempfile.mkdtemp(prefix="ldfi-disk-", dir="/tmp"))
    words = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0777", "ldfi", str(folder)]
    if os.geteuid() or subprocess.run(words, capture_output=True, check=False).returncode:
        raise Missing("no disk of our own: only root can mount one")
    try:
        yield Disk(folder)
    finally:
        unmount = ["umount", "--lazy", str(folder)]
        subprocess.run(unmount, check=True)
        folder.rmdir()
