from __future__ import annotations

from collections.abc import Iterator

import pytest

from ldfi.testing.serving import served
from tests.fit.applications import echo_app
from tests.fit.clients.contract import Requests


@pytest.fixture
def requests_made(installed: None) -> Requests:
    return Requests()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """An HTTP server on loopback; its URL."""
    with served(echo_app()) as url:
        yield url
