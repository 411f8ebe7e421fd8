"""Programs that the tests of the deployment run: skipped where missing, but never in CI."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"


def promtool() -> str:
    """The checker that comes with Prometheus."""
    found = shutil.which("promtool")
    return found or _missing("promtool is not installed: apt-get install prometheus")


def collector() -> Path:
    """The OpenTelemetry Collector as deploy/collector/build leaves it in the cache."""
    build = DEPLOY / "collector" / "build"
    asked = subprocess.run([build, "--where"], capture_output=True, text=True, check=True)
    binary = Path(asked.stdout.strip())
    return binary if binary.exists() else _missing(f"there is no Collector: run {build}")


def _missing(why: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)
