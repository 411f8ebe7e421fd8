from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry import trace

from ldfi.testing.live_service import served
from tests.fit.applications import echo_app
from tests.fit.clients.contract import Requests


@pytest.fixture
def requests_made(installed: None) -> Requests:
    return Requests()


@pytest.fixture
def own_spans(requests_made: Requests, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that are not instrumented: a call that is hit has a span of ``fit``'s own."""
    tracer = requests_made.provider.get_tracer("fit")
    monkeypatch.setattr(trace, "get_tracer", lambda *_, **__: tracer)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """An HTTP server on loopback; its URL."""
    with served(echo_app()) as url:
        yield url
