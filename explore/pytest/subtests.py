"""Subtests of a run: whoever fails in one of them fails, and pytest hears of it once.

unittest's ``subTest`` and the fixture ``subtests`` report each subtest as it ends, by the hooks of
its test, and the test itself goes on and passes. While a test is run again and again these reports
are kept back: they tell how the run went, and are passed on where the test fails by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def kept_back(item: pytest.Item) -> Iterator[list[pytest.TestReport]]:
    """Keep what is reported of an item within the block, instead of having pytest hear of it."""
    kept: list[pytest.TestReport] = []
    before = type(item)

    class KeptBack(before):  # type: ignore[misc, valid-type]
        """The item, of which nobody hears."""

        @property
        def ihook(self) -> Any:
            return _Hooks(super().ihook, kept)

    item.__class__ = KeptBack
    try:
        yield kept
    finally:
        item.__class__ = before


class _Hooks:
    """pytest's hooks, but for reports."""

    def __init__(self, hooks: Any, kept: list[pytest.TestReport]) -> None:
        self._hooks, self._kept = hooks, kept

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._kept.append(report)

    def pytest_exception_interact(self, **_: Any) -> None:
        """Let no debugger in: the failure may be one that was injected."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hooks, name)
