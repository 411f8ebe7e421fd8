"""Binaries of the Go module, built for tests. Go keeps what it has built."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.kit import needs

GO = Path(__file__).parents[2] / "ldfi" / "fit" / "go"


def built(command: str, folder: Path, package: str = "") -> Path:
    """Build ``cmd/COMMAND``, or a package. Skip on a laptop without Go, fail in CI."""
    go = needs.program("go")
    made = folder / command
    subprocess.run(
        [go, "build", "-o", str(made), package or f"./cmd/{command}"],
        cwd=GO.resolve(),
        env={**os.environ, "GOFLAGS": "-buildvcs=false"},
        check=True,
        timeout=600,
    )
    return made
