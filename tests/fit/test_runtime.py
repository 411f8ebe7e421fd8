"""What a service may know of the request it serves."""

from __future__ import annotations

import time

import pytest
from opentelemetry import baggage, context

from ldfi import fit
from ldfi.fit import runtime
from ldfi.fit.protocol.context import encode
from tests.fit.applications import KEYS


@pytest.mark.usefixtures("installed")
def test_a_service_is_told_experiment_and_arm_of_what_it_serves() -> None:
    assert fit.current() is None
    value = encode(KEYS, "e1", "control", int(time.time()) + 5, [])
    token = context.attach(baggage.set_baggage("fit", value))
    try:
        found = fit.current()
        assert found is not None
        assert (found.experiment, found.arm) == ("e1", "control")
    finally:
        context.detach(token)
    assert fit.current() is None


def test_without_fit_there_is_nothing_to_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_runtime", None)
    assert fit.current() is None


@pytest.mark.usefixtures("installed")
def test_a_fault_of_ours_is_no_fault_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(runtime.Runtime, "context", broken)
    assert fit.current() is None
