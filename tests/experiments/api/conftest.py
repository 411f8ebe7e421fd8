"""A service of the test's own, and one that stands for all tests of a module."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from tests.kit.service import GIVEN, Unlimited, client_of, service


@pytest.fixture
def app(database_url: str) -> FastAPI:
    return service(database_url)


@pytest.fixture
def client(app: FastAPI) -> Iterator[httpx.Client]:
    """An operator of the test's own service."""
    with client_of(app, GIVEN["operator"]) as running:
        yield running


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> str:
    """A database for all tests of a module."""
    return f"sqlite:///{shutil.copy2(sqlite_template, tmp_path_factory.mktemp('module'))}"


@pytest.fixture(scope="module")
def standing_app(empty: str) -> FastAPI:
    app = service(empty, quiet=0.05)
    app.state.rate_limiter = Unlimited()
    return app


@pytest.fixture(scope="module")
def standing(standing_app: FastAPI) -> Iterator[httpx.Client]:
    """An operator of a service that its tests leave as it is, and may call without limit."""
    with client_of(standing_app, GIVEN["operator"]) as running:
        yield running
