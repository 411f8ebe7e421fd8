"""What the service under test is called in the names of points."""

from __future__ import annotations

import os
from typing import Final

SERVICE: Final = "app"
"""What it is called where ``OTEL_SERVICE_NAME`` says nothing."""


def service_name() -> str:
    """Name the service under test as the names of its points do."""
    return os.environ.get("OTEL_SERVICE_NAME") or SERVICE
