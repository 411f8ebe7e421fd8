"""Programs that the tests of the deployment run: skipped where missing, but never in CI."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

from deploy.stack.collector import installed
from deploy.stack.missing import Missing

DEPLOY = Path(__file__).parents[2] / "deploy"


def promtool() -> str:
    """The checker that comes with Prometheus."""
    found = shutil.which("promtool")
    return found or skip("promtool is not installed: apt-get install prometheus")


def prometheus() -> str:
    """Prometheus itself."""
    found = shutil.which("prometheus")
    return found or skip("prometheus is not installed: apt-get install prometheus")


def collector() -> Path:
    """The OpenTelemetry Collector as deploy/collector/build leaves it in the cache."""
    try:
        return installed()
    except Missing as error:
        skip(str(error))


def helm() -> str:
    """Helm as deploy/helm/build leaves it in the cache; skipped in CI as well where it could not be
    built: that takes some hundred modules from the network, and no other test hangs on them."""
    asked = [str(DEPLOY / "helm" / "build"), "--where"]
    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    return found if Path(found).exists() else pytest.skip("Helm is not built: deploy/helm/build")


def skip(why: str) -> NoReturn:
    """Skip the test for want of something, which in CI must be there."""
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)
