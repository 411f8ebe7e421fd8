"""Programs that the tests of the deployment run: skipped where missing, but never in CI."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from deploy.stack.collector import installed
from deploy.stack.missing import Missing
from tests.kit import needs

DEPLOY = Path(__file__).parents[2] / "deploy"


def promtool() -> str:
    """The checker that comes with Prometheus."""
    return needs.program("promtool")


def prometheus() -> str:
    """Prometheus itself."""
    return needs.program("prometheus")


def collector() -> Path:
    """The OpenTelemetry Collector as deploy/collector/build leaves it in the cache."""
    try:
        return installed()
    except Missing as error:
        needs.lacking(str(error))


def helm() -> str:
    """Helm as deploy/helm/build leaves it in the cache; skipped in CI as well where it could not be
    built: that takes some hundred modules from the network, and no other test hangs on them."""
    asked = [str(DEPLOY / "helm" / "build"), "--where"]
    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    return found if Path(found).exists() else pytest.skip("Helm is not built: deploy/helm/build")
