"""For all tests: hypothesis sets no deadline, since how fast a machine is proves nothing.

Runs are alike: the same examples are drawn each time, so that a failure is of the change that
brought it. ``--hypothesis-profile=search`` draws anew.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ldfi", settings.get_profile("search"), derandomize=True)
settings.load_profile("ldfi")

LONG = "long"
"""The mark of tests that take more than half a minute."""


def pytest_configure(config: pytest.Config) -> None:
    """Name our marks."""
    config.addinivalue_line("markers", f"{LONG}: takes more than half a minute; begins first")


def pytest_xdist_auto_num_workers() -> int:
    """Use one worker more than there are cores: a good part of the tests waits for something."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest: where several run side by side, none ends alone."""
    first = {item.path for item in items if item.get_closest_marker(LONG)}
    items.sort(key=lambda item: item.path not in first)
