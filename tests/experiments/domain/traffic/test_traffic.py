"""Traffic keeps what exploration needs, through shapes and through JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.traffic import class_suspects as suspected_module
from ldfi.experiments.domain.traffic import class_traffic as traffic_module
from ldfi.experiments.domain.traffic import topology as topology_module
from ldfi.experiments.domain.traffic.class_suspects import KEPT
from ldfi.experiments.domain.traffic.class_traffic import (
    STEADY_OUTCOMES,
    STEADY_SECONDS,
    Steady,
    Traffic,
)
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.experiments.domain.traffic.point_shares import share_of, shares
from ldfi.experiments.domain.traffic.topology import Topology
from ldfi.lineage.blame import FailureRecord, blame
from ldfi.lineage.lineage import Lineage, learn, learn_in_full
from ldfi.lineage.shapes import Shapes
from ldfi.lineage.span import Trace
from ldfi.lineage.tree import Tree
from ldfi.testing.programs import Run, points_of
from ldfi.testing.spans import lineage, span
from tests.kit.observations import observation
from tests.lineage.drawn import programs, sets_of


def test_a_degraded_answer_is_no_evidence() -> None:
    run = lineage(span("root", kind="server"), span("a", "root"))
    whole, degraded = observation(run), observation(run, degraded=True)

    traffic = observed([degraded] * 30)
    assert (traffic.good, list(traffic.frequent())) == (0, [])
    assert traffic.success_rate() == 1
    assert observed([whole]).good == 1


@st.composite
def observations(draw: st.DrawFn) -> list[Observation]:
    """Requests to one program, in which nature makes calls fail."""
    program = draw(programs(points=6))
    failing = sets_of([f"nature@{point}" for point in points_of(program)])
    runs = [Run(frozenset(), each).execute(program) for each in draw(st.lists(failing, max_size=6))]
    found: list[Observation] = []
    for number in draw(st.lists(st.integers(0, len(runs) - 1), max_size=60)) if runs else []:
        run = learn(Trace.of("0" * 32, runs[number].spans))
        assert run is not None
        found.append(observation(run, runs[number].good, len(found)))
    return found


def observed(seen: Sequence[Observation]) -> Traffic:
    traffic = Traffic()
    for each in seen:
        traffic.observe(each, now=0.0)
    return traffic


def needed(traffic: Traffic) -> list[object]:
    """Everything that exploration asks of traffic."""
    points = sorted(traffic.topology.paths)
    return [
        traffic.good,
        traffic.success_rate(),
        list(traffic.frequent()),
        traffic.usual_support(),
        traffic.usually_called(),
        traffic.topology,
        traffic.topology.shared(),
        traffic.not_looked_at(),
        [traffic.topology.behind(frozenset({a, b})) for a in points for b in points],
    ]


def shop(worker_done: int) -> Lineage:
    """An order: a message is sent, and its consumer is done after so many milliseconds."""
    ms = 1_000_000
    return lineage(
        span("root", kind="server", at=(0, 20 * ms)),
        span("send", "root", "producer", point="api>message:send:kafka/orders", at=(1, 2)),
        span("take", "send", "consumer", "worker", at=(3, worker_done * ms), point="take"),
        span("insert", "take", service="worker", at=(4, 5)),
        span("audit", "root", "producer", point="api>message:send:kafka/audit", at=(1, 2)),
    )


def test_what_no_request_waits_for_is_named_and_survives_storage() -> None:
    # Given requests whose consumer outlasts them, and one whose consumers nobody saw
    traffic = observed([observation(shop(2_000), number=n) for n in range(3)])
    wanted = {
        "take": "no request waits for it",
        "insert": "no request waits for it",
        "api>message:send:kafka/audit": "what became of its messages was not seen",
    }
    # Then they are named, also after a restart; records without such names are read
    kept = json.loads(json.dumps(traffic.to_json()))
    assert traffic.not_looked_at() == Traffic.from_json(kept).not_looked_at() == wanted
    del kept["aside"]
    assert Traffic.from_json(kept).not_looked_at() == {}
    # When one of them is over in time, it counts and is looked at
    traffic.observe(observation(shop(10), number=4), 0.0)
    assert traffic.not_looked_at().keys() == {"api>message:send:kafka/audit"}
    assert "insert" in traffic.reached()


@given(observations(), observations())
def test_traffic_survives_storage(seen: list[Observation], later: list[Observation]) -> None:
    kept = observed(seen)
    text = json.dumps(kept.to_json())
    restored = Traffic.from_json(json.loads(text))
    assert needed(restored) == needed(kept)
    assert json.dumps(restored.to_json()) == text
    for each in later:  # and goes on as if nothing had happened
        kept.observe(each, now=0.0)
        restored.observe(each, now=0.0)
    assert needed(restored) == needed(kept)


@given(observations())
def test_traffic_of_shapes_is_that_of_their_requests(seen: list[Observation]) -> None:
    kept, shapes = observed(seen), Shapes(spans=False)
    for each in seen:
        shapes.add(each.lineage, each.outcome.success)
    built = Traffic.of(shapes, kept.topology, 0.0, 9.0)
    assert {(a, b) for a, b, _ in built.frequent()} == {(a, b) for a, b, _ in kept.frequent()}
    assert needed(built)[:2] == pytest.approx(needed(kept)[:2])
    assert needed(built)[3:] == needed(kept)[3:]


def test_the_steady_state_of_shapes_is_spread_evenly() -> None:
    shapes = Shapes()
    run = lineage(span("root", kind="server"), span("a", "root"))
    for number in range(1000):
        shapes.add(observation(run, number=number).lineage, number % 10 > 0)
    traffic = Traffic.of(shapes, Topology(), 0.0, 9.0)
    assert traffic.success_rate() == 0.9
    for _ in range(STEADY_OUTCOMES // 2):
        traffic.observe(observation(run), now=0.0)
    assert traffic.success_rate() == 0.95


def test_the_same_shape_of_trace_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    walked = []
    tree = Lineage.tree.fget  # type: ignore[attr-defined]

    def counted(run: Lineage) -> Tree:
        walked.append(run)
        return tree(run)  # type: ignore[no-any-return]

    monkeypatch.setattr(Lineage, "tree", property(counted))
    root, outer = span("root", kind="server", at=(0, 9)), span("a", "root", at=(1, 8))
    inside = (root, outer, span("b", "a", at=(2, 3)))
    beside = (root, outer, span("b", "root", at=(2, 3)))
    topology = Topology()
    for spans in (inside, inside, beside, inside, beside):
        topology.learn(lineage(*spans))
    # Both call and rely on the same points; where those stand differs
    assert len(walked) == 2
    assert topology.paths["b"] == {frozenset("a"), frozenset()}


def test_traces_that_are_not_recognised_are_all_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology_module, "REMEMBERED", 3)
    topology = Topology()
    for i in range(50):
        trace = Trace.of("1" * 32, (span("root", kind="server"), span("x", "root", point=f"p{i}")))
        run = learn_in_full(trace)
        assert run is not None
        topology.learn(run)
    assert len(topology.paths) == 50
    assert len(topology._learned) <= 3


def test_scattered_traffic_is_bounded_and_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic_module, "MOST", 10)
    traffic = Traffic()
    root = span("root", kind="server")
    for i in range(500):
        call = span("x", "root", point=f"p{i}")
        traffic.observe(observation(lineage(root, call)), now=0.0)
    frequent = list(traffic.frequent())
    assert len(frequent) == 1  # of the ten that were kept none is
    union = frequent[0][0]
    assert {f"error@p{i}" for i in range(10, 500)} <= union
    assert sum(len(g.counts) for g in traffic._groups.values()) <= 11
    assert len(traffic._undisturbed) <= 10


def test_the_steady_state_ages() -> None:
    # Given a class that went well all night, and of late fails
    traffic, run = Traffic(), lineage(span("root", kind="server"), span("a", "root"))
    for number in range(150):
        traffic.observe(observation(run, number=number), now=100.0 + number)
    assert traffic.steady(300.0) == Steady(150, 1.0)
    assert traffic.steady(249.0 + STEADY_SECONDS) == Steady(0, 1.0)
    for number in range(4):
        traffic.observe(observation(run, number > 0, number), now=10_000.0)
    # Then what it was says nothing of now, also after a restart
    restored = Traffic.from_json(json.loads(json.dumps(traffic.to_json())))
    for each in (traffic, restored):
        assert each.steady(10_001.0) == Steady(4, 0.75)
        assert each.success_rate() > 0.95


def test_what_was_kept_before_times_were_is_too_old() -> None:
    traffic = observed([])
    data = traffic.to_json() | {"recent": "0111"}
    del data["recent_at"]
    restored = Traffic.from_json(data)
    assert restored.steady(1e9) == Steady(0, 1.0)
    assert restored.success_rate() == 0.75


@given(st.integers(1, 500), st.floats(0, 1e6), st.floats(0, 1e6))
def test_what_a_sample_held_is_as_old_as_the_sample(count: int, since: float, took: float) -> None:
    shapes, run = Shapes(), lineage(span("root", kind="server"), span("a", "root"))
    for _ in range(count):
        shapes.add(run, True)
    now = since + took
    steady = Traffic.of(shapes, Topology(), since, now).steady(now)
    if took < STEADY_SECONDS:
        assert steady.outcomes == min(count, STEADY_OUTCOMES)
    else:
        assert steady.outcomes <= count * STEADY_SECONDS / took + 1


@given(st.integers(0, 400), st.floats(0.05, 100))
def test_the_rate_of_outcomes_is_told_where_it_can_be(count: int, apart: float) -> None:
    traffic, run = Traffic(), lineage(span("root", kind="server"), span("a", "root"))
    for number in range(count):
        traffic.observe(observation(run, number=number), now=apart * number)
    rate = traffic.per_second(apart * count)
    if rate is not None:
        assert rate == pytest.approx(1 / apart, rel=0.11)
    else:
        assert count < 12 or apart * count < 61 or apart > STEADY_SECONDS / 11
    # And of a class that was silent since, nobody knows
    assert traffic.per_second(apart * count + STEADY_SECONDS) is None


# --- Requests that failed by themselves ----------------------------------------------------------


def failing(*points: str, told: bool = True) -> Lineage:
    """A request in which these calls failed, one after the other, and so did the request."""
    calls = [span(p, "root", failed=True, at=(2 * n, 2 * n + 1)) for n, p in enumerate(points, 1)]
    return lineage(span("root", kind="server", failed=told, at=(1, 99)), *calls)


USUAL = lineage(span("root", kind="server"), span("a", "root"), span("b", "root"))
KNOWN = [observation(USUAL, number=number) for number in range(20)]


def test_who_is_blamed_for_natural_failures_is_counted_and_survives_storage() -> None:
    failed = [observation(failing("a"), success=False, number=20)] * 2
    failed += [observation(failing("b", "standby"), success=False, number=21)] * 3
    # What failed although its trace says that all was well names nobody; nor does what went right
    failed += [observation(failing("a", told=False), success=False, number=22)]
    failed += [observation(failing("a"), number=23)]

    traffic = observed([*KNOWN, *failed])

    assert traffic.suspected.named() == [{"b", "standby"}, {"a"}]
    kept = json.loads(json.dumps(traffic.to_json()))
    assert Traffic.from_json(kept).suspected == traffic.suspected
    del kept["suspected"]  # as records once were
    assert Traffic.from_json(kept).suspected.named() == []


def test_before_it_is_known_what_a_class_relies_on_nobody_is_blamed() -> None:
    assert observed([observation(failing("a"), success=False)]).suspected.named() == []


def test_suspects_are_bounded_and_so_is_an_outages_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [failing(f"p{number}") for number in range(2 * KEPT)]
    traffic = observed([*KNOWN, *(observation(each, success=False) for each in many)])
    assert len(traffic.suspected.named()) == KEPT
    too_large = observation(failing(*"abcde"), success=False)
    assert observed([*KNOWN, too_large]).suspected.named() != [set("abcde")]

    looked: list[Tree] = []

    def counted(tree: Tree, usual: frozenset[str], record: FailureRecord) -> tuple[str, ...]:
        looked.append(tree)
        return blame(tree, usual, record)

    monkeypatch.setattr(suspected_module, "blame", counted)
    run = failing("a")
    observed([*KNOWN, *(observation(run, success=False, number=n) for n in range(50))])
    assert len(looked) == 1


@given(observations(), observations())
def test_a_copy_is_the_same_and_stays(before: list[Observation], after: list[Observation]) -> None:
    traffic = observed(before)
    copied, written = traffic.copy(), traffic.to_json()
    assert copied.to_json() == written
    for each in after:
        traffic.observe(each, now=7.0)
    assert copied.to_json() == written
    for each in after:
        copied.observe(each, now=7.0)
    assert copied.to_json() == traffic.to_json()


def test_what_few_requests_came_by_without_is_not_shown_to_be_dispensable() -> None:
    # Given a store that one request in ten asks, and ten asked nothing else
    hit = lineage(span("root", kind="server"), span("cache", "root"))
    miss = lineage(span("root", kind="server"), span("cache", "root"), span("store", "root"))
    traffic = observed([observation(hit if n % 10 else miss, number=n) for n in range(200)])
    called = frozenset({"cache"})
    held = {fault.partition("@")[2] for fault in traffic.unmet(called, 10)}
    assert held == {"store"}
    # Of a hundred some would have, by chance; unless those that did have failed
    assert traffic.unmet(called, 100) == frozenset()
    assert {f.partition("@")[2] for f in traffic.unmet(called, 100, frozenset({"store"}))} == held
    # Nobody comes by what all of them call
    assert traffic.unmet(frozenset(), 10) >= traffic.unmet(called, 10)
    assert (share_of(traffic, ["store"]), shares(traffic)) == (0.1, {"store": 0.1})
    # And so it is of what nature has tried on a few
    without = lineage(span("root", kind="server"), span("cache", "root", failed=True))
    traffic = observed(
        [observation(hit if n % 10 else miss, number=n) for n in range(200)]
        + [observation(without, number=200 + n) for n in range(20)]
    )
    relied_on = {f for faults, failed, _ in traffic.frequent() if failed for f in faults}
    assert "error@store" in relied_on


def test_a_dead_dependency_that_something_stands_in_for_is_what_a_class_is_without() -> None:
    dead = lineage(
        span("root", kind="server"),
        *(span("ads", "root", failed=True), span("spare", "root"), span("a", "root")),
    )
    traffic = observed([observation(dead, number=n) for n in range(513)])
    assert traffic.usual_support() == {"spare", "a"}
    kept = json.loads(json.dumps(traffic.to_json()))
    assert Traffic.from_json(kept).usual_support() == {"spare", "a"}
    # When it lives again, that was by chance
    alive = lineage(span("root", kind="server"), span("ads", "root"), span("a", "root"))
    traffic.observe(observation(alive, number=999), now=0.0)
    assert traffic.usual_support() == {"ads", "a"}
