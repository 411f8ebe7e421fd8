"""Databases with a past, each made once and then copied; services over them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboards import seeded as past
from tests.dashboards.browsing import Browser, Site, site
from tests.dashboards.seeded import Seeded
from tests.kit.once import once
from tests.kit.service import Unlimited, service


@pytest.fixture(scope="session")
def seeded_file(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Seeded]:
    """The file of a seeded database, to copy, and what is in it."""
    return once(tmp_path_factory, "seeded", lambda file: past.seed(f"sqlite:///{file}"))


@pytest.fixture(scope="session")
def seeded(seeded_file: tuple[Path, Seeded]) -> Seeded:
    """What is in the database at ``seeded_url``."""
    return seeded_file[1]


@pytest.fixture
def seeded_url(seeded_file: tuple[Path, Seeded], tmp_path: Path) -> str:
    """A seeded database of the test's own."""
    return f"sqlite:///{shutil.copy(seeded_file[0], tmp_path / 'ldfi.sqlite3')}"


@pytest.fixture(scope="session")
def reading(
    seeded_file: tuple[Path, Seeded], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """A service over a seeded database, for tests that change nothing."""
    copy = shutil.copy(seeded_file[0], tmp_path_factory.mktemp("reading") / "ldfi.sqlite3")
    app = service(f"sqlite:///{copy}")
    app.state.rate_limiter = Unlimited()
    with site(app) as here:
        yield here


@pytest.fixture
def viewer(reading: Site) -> Browser:
    """Somebody who looks at it."""
    return reading.logged_in("viewer")


@pytest.fixture
def here(seeded_url: str) -> Iterator[Site]:
    """A service over a seeded database, for a test that changes something."""
    with site(service(seeded_url)) as here:
        yield here


@pytest.fixture
def operator(here: Site) -> Browser:
    """Somebody who changes something there."""
    return here.logged_in("operator")


@pytest.fixture(scope="session")
def nothing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service that has seen nothing yet, for tests that change nothing."""
    with site(service(f"sqlite:///{tmp_path_factory.mktemp('nothing') / 'x.sqlite3'}")) as here:
        yield here


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service that has explored an application nobody has prepared anything for."""
    url = f"sqlite:///{tmp_path_factory.mktemp('harbour') / 'ldfi.sqlite3'}"
    past.harbour(url)
    with site(service(url)) as here:
        yield here
