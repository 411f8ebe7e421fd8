"""A Chromium for the tests of each file, and the service over a database with a past."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser

from tests.dashboards.browser import axe
from tests.dashboards.browser.chromium import chromium
from tests.dashboards.seeded import Seeded, alive, seed


@dataclass(frozen=True, slots=True)
class Site:
    """A running service, and what there is to look at."""

    url: str
    known: Seeded


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, without a profile.

    Not kept for other tests: while Playwright is in use this thread counts as running a loop, and
    nobody else can run one.
    """
    with chromium() as found:
        yield found


@pytest.fixture(scope="session")
def axe_core() -> str:
    """The text of axe-core."""
    return axe.source()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Tests of this one only look."""
    url = f"sqlite:///{tmp_path_factory.mktemp('site') / 'ldfi.sqlite3'}"
    known = seed(url)
    with alive(url) as root:
        yield Site(root, known)


Paths = Callable[[Site], str]
