"""Traces that come in pieces: nothing is made of a part, and what is lost is counted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.observation import Outcome
from ldfi.experiments.domain.traffic.waiting_times import Waiting
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store.database import Database
from ldfi.lineage.span import Span
from ldfi.testing.spans import span
from ldfi.testing.world import World

EXPORT = 5.0
START = 1000.0


@pytest.fixture
def engine() -> Iterator[Engine]:
    db = Database("sqlite://")
    yield Engine(db, now=START, waiting=Waiting.of())
    db.close()


def request(number: int) -> list[Span]:
    """A search that asks another service for suggestions, which asks a database."""
    trace = f"{number:032x}"
    inner = "search>http:GET:spelling/suggest"
    return [
        _served("root", None, "search", trace),
        span("call", "root", service="search", point=inner, trace=trace),
        _served("served", "call", "suggest", trace),
        span("query", "served", service="spelling", point="spelling>db:SELECT:words", trace=trace),
    ]


def _served(name: str, parent: str | None, path: str, trace: str) -> Span:
    asked = {"method": "GET", "path": f"/{path}"}
    return span(name, parent, "server", path, False, (1, 2), trace, **asked)


def outcome(number: int) -> Outcome:
    return Outcome(f"{number:032x}", f"d{number}", "", success=True)


def ticks(engine: Engine, now: float, until: float) -> float:
    while now < until:
        now += 0.5
        engine.tick(now)
    return now


def entries(engine: Engine) -> set[str]:
    return {known.name for known in engine.catalogue.classes.values()}


def good(engine: Engine) -> int:
    return sum(known.traffic.good for known in engine.catalogue.classes.values())


def test_no_class_is_invented_of_an_inner_service_that_exports_first(engine: Engine) -> None:
    # Given requests of which the inner service exports its spans well before the outer one
    now = START
    for number in range(60):
        spans = request(number)
        engine.receive_outcomes([outcome(number)], now)
        engine.receive_spans(spans[2:], now)
        now = ticks(engine, now, now + EXPORT - 0.5)
        engine.receive_spans(spans[:2], now)
    ticks(engine, now, now + 20)
    # Then there is one class, and every request is in it
    assert entries(engine) == {"GET /search"}
    assert good(engine) == 60
    assert not +engine.dropped


def test_what_lies_behind_a_call_is_waited_for(engine: Engine) -> None:
    # Given requests of which the inner service exports its spans last
    now = START
    for number in range(60):
        spans = request(number)
        engine.receive_outcomes([outcome(number)], now)
        engine.receive_spans(spans[:2], now)
        now = ticks(engine, now, now + EXPORT - 0.5)
        engine.receive_spans(spans[2:], now)
    ticks(engine, now, now + 20)
    # Then all of them show what the inner service relied on
    (known,) = engine.catalogue.classes.values()
    assert known.traffic.usual_support() == {
        "search>http:GET:spelling/suggest",
        "spelling>db:SELECT:words",
    }
    assert not +engine.dropped
    assert engine.drops().get("span_late", 0) == 0


def test_a_request_with_a_hole_is_counted_with_what_its_device_said(engine: Engine) -> None:
    for number in range(10):
        engine.receive_spans(request(number), START)
        engine.receive_outcomes([outcome(number)], START)
    now = ticks(engine, START, START + 20)
    # Given a request whose inner service never exports, one whose root is lost, one in the air
    engine.receive_spans(request(11)[:2], now)
    engine.receive_spans(request(12)[1:], now)
    spans = request(13)
    engine.receive_spans([spans[0], *spans[2:]], now)
    engine.receive_outcomes([outcome(11), outcome(12)], now)
    now = ticks(engine, now, now + 30)
    engine.receive_outcomes([outcome(13)], now)  # which comes when its trace is given up already
    ticks(engine, now, now + 80)
    # Then each is counted by what it misses, and none of their outcomes is lost uncounted
    drops = engine.drops()
    assert drops["trace_unanswered"] == 1
    assert drops["trace_without_root"] == 1
    assert drops["trace_incomplete"] == 1
    assert drops["join_trace_unusable"] == 3
    assert drops["join_unknown_trace"] == 0


def test_an_outcome_waits_as_long_as_its_trace_does(engine: Engine) -> None:
    # Given a request that lasts for long: its first call is exported, its root is still open
    root, *rest = request(1)
    engine.receive_outcomes([outcome(1)], START)
    engine.receive_spans(rest, START)
    now = ticks(engine, START, START + 45)
    engine.receive_spans([root], now)
    ticks(engine, now, now + 20)
    assert engine.drops()["join_unknown_trace"] == 0
    assert not +engine.dropped


def test_a_trace_that_waits_for_its_device_is_reopened_by_a_late_span(engine: Engine) -> None:
    for number in range(60):
        engine.receive_spans(request(number), START)
        engine.receive_outcomes([outcome(number)], START)
    now = ticks(engine, START, START + 20)
    # Given a trace that was taken as whole, and whose device has not reported yet
    *most, query = request(61)
    engine.receive_spans(most, now)
    now = ticks(engine, now, now + 10)
    # When a span comes late, and then the report
    engine.receive_spans([query], now)
    engine.receive_outcomes([outcome(61)], now)
    ticks(engine, now, now + 20)
    # Then nothing was late, and the request has been used as a whole
    assert engine.drops().get("span_late", 0) == 0
    assert good(engine) == 61


def test_what_is_begun_after_a_request_holds_its_trace_up_no_more(engine: Engine) -> None:
    # Given a trace that was taken as whole, and whose device has not reported yet
    trace = f"{1:032x}"
    send = span("send", "root", "producer", "search", trace=trace)
    engine.receive_spans([*request(1), send], START)
    now = ticks(engine, START, START + 20)
    # When a consumer makes a call minutes later by the clocks, and then the report comes
    late = span("pack", "take", service="store", at=(10**12, 10**12), trace=trace)
    engine.receive_spans([late], now)
    engine.receive_outcomes([outcome(1)], now)
    # Then the request is used at once
    assert engine.open_traces == 0
    assert engine.drops()["span_late"] == 1
    ticks(engine, now, now + 40)
    assert engine.fates()["unjoined"] == 0


def test_a_treated_request_with_a_hole_is_held_against_its_experiment() -> None:
    with World.in_memory() as world:
        world.start(Settings(kinds=("error",), min_traffic=50, follow=0.0))
        experiment_id = world.until_armed()
        _, experiment = world.engine.scheduler.state.experiment(experiment_id)
        marks = {"experiment": experiment_id, "arm": "treatment", "calls": "1"}
        root = span("root", None, "server", "api", False, (1, 2), "e" * 32, **marks)
        world.engine.receive_spans([root], world.now)
        world.engine.tick(world.now + 5)
        assert experiment.cut == 0
        world.engine.tick(world.now + 11)
        assert experiment.cut == 1
        assert world.engine.drops()["trace_short_of_calls"] == 1


def test_what_becomes_of_traces_is_counted(engine: Engine) -> None:
    # Given whole traces, of which one gets a span late and one no report; one cut, one rootless
    for number in range(10):
        engine.receive_spans(request(number), START)
        engine.receive_outcomes([outcome(number)], START)
    engine.receive_spans(request(10), START)
    now = ticks(engine, START, START + 20)
    engine.receive_spans([span("x", "root", trace=f"{1:032x}")], now)
    engine.receive_spans(request(11)[:2], now)
    engine.receive_spans(request(12)[2:], now)
    ticks(engine, now, now + 40)
    assert engine.fates() == {"whole": 11, "cut": 1, "rootless": 1, "late": 1, "unjoined": 1}
