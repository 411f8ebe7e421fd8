"""Binaries of the Go modules, built for tests. Go keeps what it has built."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.kit import needs

GO = Path(__file__).parents[2] / "ldfi" / "fit" / "go"
PROXY = "proxy/cmd/ldfi-proxy"


def built(package: str, folder: Path) -> Path:
    """Build a package by its folder in ``fit/go``. Skip on a laptop without Go, fail in CI."""
    go = needs.program("go")
    made = folder / Path(package).name
    subprocess.run(
        [go, "build", "-o", str(made), "."],
        cwd=(GO / package).resolve(),
        env={**os.environ, "GOFLAGS": "-buildvcs=false"},
        check=True,
        timeout=600,
    )
    return made
