"""Binaries of the Go module, built for tests. Go keeps what it has built."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

GO = Path(__file__).parents[2] / "ldfi" / "fit" / "go"


def built(command: str, folder: Path, package: str = "") -> Path:
    """Build ``cmd/COMMAND``, or a package. Skip on a laptop without Go, fail in CI."""
    go = shutil.which("go")
    if go is None:
        why = "Go is not installed"
        if os.environ.get("CI"):
            pytest.fail(f"{why}, and CI has to run this test")
        pytest.skip(why)
    made = folder / command
    subprocess.run(
        [go, "build", "-o", str(made), package or f"./cmd/{command}"],
        cwd=GO.resolve(),
        env={**os.environ, "GOFLAGS": "-buildvcs=false"},
        check=True,
        timeout=600,
    )
    return made
