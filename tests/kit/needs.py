"""What tests need of the machine: skipped where it is missing, and failed in CI."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def lacking(what: str) -> NoReturn:
    """Skip for want of something; in CI, fail."""
    if os.environ.get("CI"):
        pytest.fail(f"{what}, and CI has to run this test", pytrace=False)
    pytest.skip(what, allow_module_level=True)


def program(name: str) -> str:
    """Return where a program is."""
    return shutil.which(name) or lacking(f"{name} is not installed")
