"""Calls at patched clients that run in no trace are counted, and those in a trace are not."""

from __future__ import annotations

import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider

from ldfi.fit import contextless_calls, reporting
from ldfi.fit.clients import httpx as points


@pytest.fixture(autouse=True)
def counts(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    told: dict[str, int] = {}
    monkeypatch.setattr(contextless_calls, "_calls", Counter())
    monkeypatch.setattr(reporting, "_bare", told)
    points.patch()
    return told


def get() -> None:
    """Call somebody who does not listen: it is the call that counts."""
    with socket.socket() as bound, httpx.Client(trust_env=False) as client:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(httpx.ConnectError):
            client.get(f"http://127.0.0.1:{bound.getsockname()[1]}/7")


def test_a_call_in_a_trace_is_not_counted(counts: dict[str, int]) -> None:
    with TracerProvider().get_tracer("host").start_as_current_span("a request"):
        get()
    assert counts == {}


def test_a_pool_that_loses_the_context_is_counted_by_library(counts: dict[str, int]) -> None:
    with (
        TracerProvider().get_tracer("host").start_as_current_span("a request"),
        ThreadPoolExecutor(1) as pool,
    ):
        for _ in range(12):
            pool.submit(get).result()
    (library,) = counts
    assert library.startswith("httpx")
    assert counts[library] == 10
    assert f"shop>bare:{library}:10|none" in str(reporting.report("shop"))
