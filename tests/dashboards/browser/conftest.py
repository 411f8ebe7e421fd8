"""A Chromium for the tests of each file, and the service over a database with a past."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.dashboards.seeded import Seeded, alive
from tests.kit import axe
from tests.kit.browser import DESK, Watched, chromium, watching


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
def site(
    seeded_file: tuple[Path, Seeded], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """Tests of this one only look."""
    copy = shutil.copy(seeded_file[0], tmp_path_factory.mktemp("site") / "ldfi.sqlite3")
    with alive(f"sqlite:///{copy}") as root:
        yield Site(root, seeded_file[1])


BERLIN: dict[str, Any] = {"timezone_id": "Europe/Berlin", "locale": "en-US"}


@pytest.fixture(scope="module")
def visitor(browser: Browser, site: Site) -> Iterator[Watched]:
    """A viewer at a desk in Berlin."""
    with watching(browser, site.url, size=DESK, role="viewer", **BERLIN) as it:
        it.visit("/")  # the zone is known from now on
        yield it


@pytest.fixture(scope="module")
def worker(browser: Browser, site: Site) -> Iterator[Watched]:
    """An operator at the next desk."""
    with watching(browser, site.url, size=DESK, role="operator", **BERLIN) as it:
        yield it
