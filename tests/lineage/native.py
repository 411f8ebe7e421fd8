"""The extension in Rust, for tests: where it is not installed they are skipped, and fail in CI."""

from __future__ import annotations

import importlib.util
import os

import pytest


def required() -> None:
    """Skip the tests of a module where there is no extension."""
    if importlib.util.find_spec("ldfi_native") is None:
        if os.environ.get("CI"):
            pytest.fail("ldfi-native is not installed: `make native` builds it", pytrace=False)
        pytest.skip("ldfi-native is not installed: `make native`", allow_module_level=True)
