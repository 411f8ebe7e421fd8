from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from opentelemetry import baggage, trace
from opentelemetry.context import Context
from opentelemetry.sdk._configuration import _import_sampler
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    ALWAYS_ON,
    Decision,
    ParentBased,
    Sampler,
    SamplingResult,
    TraceIdRatioBased,
)
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, TraceState

from ldfi import fit
from ldfi.fit import runtime
from ldfi.fit.protocol.context import encode
from ldfi.fit.runtime import activate
from tests.fit.applications import KEYS

pytestmark = pytest.mark.usefixtures("installed")

INNER = [ALWAYS_OFF, ALWAYS_ON, ParentBased(ALWAYS_OFF), ParentBased(TraceIdRatioBased(0.0))]
STATE = TraceState([("vendor", "1")])


def under_experiment(seconds: int = 5, arm: Any = "treatment") -> Context:
    value = encode(KEYS, "e1", arm, int(time.time()) + seconds, [])
    return baggage.set_baggage("fit", value, Context())


def parent(within: Context, *, remote: bool, sampled: bool) -> Context:
    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    span = SpanContext(0xA, 0xB, is_remote=remote, trace_flags=flags, trace_state=STATE)
    return trace.set_span_in_context(NonRecordingSpan(span), within)


@pytest.fixture(params=INNER, ids=lambda inner: inner.get_description())
def tracer(request: pytest.FixtureRequest) -> Iterator[trace.Tracer]:
    provider = TracerProvider(sampler=fit.Sampler(request.param))
    yield provider.get_tracer("test")
    provider.shutdown()


def started(tracer: trace.Tracer, within: Context) -> tuple[bool, Mapping[str, Any], TraceState]:
    span: Any = tracer.start_span("work", within, attributes={"own": 1})
    span.end()
    found = span.get_span_context()
    return found.trace_flags.sampled, getattr(span, "attributes", None) or {}, found.trace_state


@pytest.mark.parametrize("arm", ["treatment", "control"])
@pytest.mark.parametrize("sampled", [True, False])
def test_a_request_under_experiment_is_kept_whatever_its_remote_parent_decided(
    tracer: trace.Tracer, sampled: bool, arm: str
) -> None:
    within = parent(under_experiment(arm=arm), remote=True, sampled=sampled)

    kept, attributes, state = started(tracer, within)

    assert kept
    assert attributes == {"own": 1, "fit.experiment": "e1", "fit.arm": arm}
    assert dict(state) == dict(STATE) or state == TraceState()


def test_a_request_without_a_parent_is_kept(tracer: trace.Tracer) -> None:
    kept, attributes, _ = started(tracer, under_experiment())

    assert kept
    assert attributes["fit.experiment"] == "e1"


def test_only_the_first_span_of_a_service_says_so(tracer: trace.Tracer) -> None:
    kept, attributes, _ = started(tracer, parent(under_experiment(), remote=False, sampled=True))

    assert kept
    assert attributes == {"own": 1}


@pytest.mark.parametrize("value", ["1.k.e.t.1.e.x", "", "x" * 5000])
def test_a_context_that_does_not_verify_keeps_nothing(value: str) -> None:
    tracer = TracerProvider(sampler=fit.Sampler(ALWAYS_OFF)).get_tracer("test")
    assert not started(tracer, baggage.set_baggage("fit", value, Context()))[0]
    assert not started(tracer, under_experiment(seconds=-400))[0]


@pytest.mark.parametrize("inner", INNER, ids=lambda inner: inner.get_description())
def test_a_request_that_outlasts_its_context_is_kept_to_its_end(inner: Sampler) -> None:
    tracer = TracerProvider(sampler=fit.Sampler(inner)).get_tracer("test")
    kept, attributes, _ = started(tracer, under_experiment(seconds=-20))
    assert kept
    assert attributes["fit.experiment"] == "e1"


def test_without_a_key_nothing_is_kept() -> None:
    activate(None)
    tracer = TracerProvider(sampler=fit.Sampler(ALWAYS_OFF)).get_tracer("test")
    assert not started(tracer, under_experiment())[0]


def test_what_the_inner_sampler_writes_on_the_span_stays() -> None:
    class Marking(Sampler):
        def should_sample(self, *args: Any, **kwargs: Any) -> SamplingResult:
            return SamplingResult(Decision.DROP, {"rule": "health"}, STATE)

        def get_description(self) -> str:
            return "marking"

    tracer = TracerProvider(sampler=fit.Sampler(Marking())).get_tracer("test")
    kept, attributes, state = started(tracer, under_experiment())

    assert kept
    assert attributes["rule"] == "health"
    assert dict(state) == dict(STATE)


@pytest.mark.parametrize(
    "broken", ["ldfi.fit.sampler._marks", "ldfi.fit.sampler._kept", "ldfi.fit.runtime.active"]
)
def test_an_exception_of_ours_leaves_the_inner_decision(
    monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def boom(*_: object) -> None:
        raise RuntimeError(broken)

    monkeypatch.setattr(broken, boom)
    for inner, kept in ((ALWAYS_ON, True), (ALWAYS_OFF, False)):
        tracer = TracerProvider(sampler=fit.Sampler(inner)).get_tracer("test")
        assert started(tracer, under_experiment())[0] is kept


def test_a_log_handler_that_fails_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def boom(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(runtime._log, "debug", boom)
    runtime.swallow()


@pytest.mark.parametrize(
    ("argument", "share"), [("0.25", "0.25"), ("", "1.0"), ("half", "1.0"), ("7", "1.0")]
)
def test_the_sdk_finds_it_by_its_name_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, argument: str, share: str
) -> None:
    # Given a service that is configured by environment variables alone
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "fit")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", argument)
    # Then the SDK takes it, with the share that was asked for
    sampler = _import_sampler("fit")
    assert isinstance(sampler, fit.Sampler)
    assert f"TraceIdRatioBased{{{share}}}" in sampler.get_description()
