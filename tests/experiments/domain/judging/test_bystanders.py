"""Bystanders: the evidence against brute force, and what it takes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ldfi.experiments.domain.judging.bystanders import (
    ENOUGH,
    LONGEST,
    NEWEST,
    Bystanders,
    systems_of,
)
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.baseline import Baseline, Spell
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.fit.protocol.faults import Fault
from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.span import Links, Span, Trace
from ldfi.testing.spans import lineage, span
from tests.experiments.simulated import BOOT
from tests.kit.observations import observation

OUTCOMES = st.lists(st.tuples(st.sampled_from("abcdefghij"), st.booleans()), max_size=60)


def beside(failed: int = 0, total: int = 200) -> Bystanders:
    bystanders = Bystanders(frozenset({"ratings"}))
    bystanders.note("GET /list", Spell(failed, total))
    return bystanders


def feed(bystanders: Bystanders, outcomes: list[tuple[str, bool]]) -> Bystanders:
    for device, success in outcomes:
        bystanders.add("GET /list", device, success=success, reached=False)
    return bystanders


RATE = 40
"""Requests in a second."""


def lived(fails: Callable[[int], bool], seconds: int, rng: random.Random) -> Baseline:
    """How a class has fared in so many seconds before an experiment."""
    baseline = Baseline()
    for number in range(seconds * RATE):
        at = number // RATE
        baseline.add(f"d{rng.random()}", float(at), success=not fails(at))
    return baseline


def after(baseline: Baseline) -> Bystanders:
    bystanders = Bystanders(frozenset({"ratings"}), delta=0.15)
    bystanders.note("GET /list", baseline.worst(1_000.0))
    return bystanders


@given(OUTCOMES, st.integers(0, 40))
@example([("one that tries again and again", False)] * 60, 0)
def test_they_are_hurt_where_some_run_of_outcomes_says_so(
    outcomes: list[tuple[str, bool]], failed: int
) -> None:
    """By the largest sum over all runs of outcomes, which is what the sum kept at zero finds."""
    usual = (failed + 1) / 202
    worse = usual + 0.25 * (1 - usual)
    seen, gains = set[str](), list[float]()
    for device, success in outcomes:
        if success:
            gains.append(math.log((1 - worse) / (1 - usual)))
        elif device not in seen:
            seen.add(device)
            gains.append(math.log(worse / usual))
    best = max((math.fsum(gains[i:j]) for j in range(len(gains) + 1) for i in range(j)), default=0)
    if abs(best - ENOUGH) > 1e-9:
        hurt = feed(beside(failed), outcomes).hurt is not None
        assert hurt is (best >= ENOUGH)


def test_a_few_failures_in_a_row_are_enough_and_the_figures_are_told() -> None:
    hurt = feed(beside(), [("calm", True)] * 50 + [(f"d{n}", False) for n in range(5)]).hurt
    assert hurt == (
        "3 of 53 requests that nobody injected into failed, which reach ratings too; 0 of 200 had "
        "before, at worst"
    )


@pytest.mark.parametrize("known", [10, 60])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.05, 0.2])
def test_what_failed_before_as_often_is_no_harm(share: float, known: int) -> None:
    """Of a hundred experiments of a thousand bystanders at most one is stopped in vain, however
    many seconds were seen before."""
    rng = random.Random(1)
    stopped = 0
    for _ in range(100):
        baseline = lived(lambda _: rng.random() < share, known, rng)
        told = [(f"d{n}", rng.random() >= share) for n in range(1_000)]
        stopped += feed(after(baseline), told).hurt is not None
    assert stopped <= 1


@pytest.mark.parametrize("share", [0.01, 0.05])
def test_bursts_as_there_were_before_are_no_harm(share: float) -> None:
    """Everybody behind a network fails while it is bad, for ten seconds: in fifty
    experiments of twenty seconds, with two minutes known before, none is stopped."""
    stopped = 0
    for seed in range(50):
        rng = random.Random(seed)
        bad: dict[int, list[bool]] = {}

        def fails(at: int, rng: random.Random = rng, bad: dict[int, list[bool]] = bad) -> bool:
            networks = bad.setdefault(at // 10, [rng.random() < share for _ in range(25)])
            return rng.choice(networks)

        baseline = lived(fails, 120, rng)
        told = [(f"d{n}", not fails(120 + n // RATE)) for n in range(20 * RATE)]
        stopped += feed(after(baseline), told).hurt is not None
    assert stopped == 0


def test_it_is_felt_until_the_newest_are_as_before_or_for_ten_minutes() -> None:
    bystanders = feed(beside(), [(f"d{n}", False) for n in range(10)])
    assert bystanders.felt(1.0)
    feed(bystanders, [("e", True)] * (NEWEST - 2))
    assert bystanders.felt(1.0)
    assert not bystanders.felt(LONGEST)
    feed(bystanders, [("e", True)])
    assert not bystanders.felt(1.0)


def test_a_point_is_its_own_system_where_nobody_knows_better() -> None:
    points = frozenset({"api>http:GET:ratings/x", "home>function:rank", "api>db:GET:sessions"})
    callees = {"api>db:GET:sessions": "redis"}
    assert systems_of(points, callees) == {"ratings", "home>function:rank", "redis"}


# Work for several requests at once: who met a fault, whatever comes first, against brute force.


POINT = "a"
FAULTS = frozenset({POINT})


def name(number: int) -> str:
    return f"{number:032x}"


def run(number: int, *spans: Span) -> Lineage:
    learned = learn(Trace.of(name(number), [s._replace(trace_id=name(number)) for s in spans]))
    assert learned is not None
    return learned


def links(*numbers: int) -> Links:
    return tuple((name(number), "batch") for number in numbers)


def treated(number: int, serves: tuple[int, ...] = (), times: int = 1, depth: int = 0) -> Lineage:
    """A request in which a batch is sent: its span, or one ``depth`` levels above the calls, links
    to the requests that it is for."""
    ends = [
        span(f"up{level}", f"up{level - 1}" if level else "root", kind="internal")
        for level in range(depth + 1)
    ]
    ends[0] = ends[0]._replace(links=links(*serves))
    calls = [
        span(f"c{n}", f"up{depth}", failed=True, fired="refused", point=POINT) for n in range(times)
    ]
    return run(number, span("root", kind="server"), *ends, *calls)


def other(number: int, waits_for: tuple[int, ...] = ()) -> Lineage:
    """A request that joined others' calls, or none."""
    joined = span("wait", "root", kind="internal")._replace(links=links(*waits_for))
    return run(number, span("root", kind="server"), joined)


@given(
    serves=st.lists(st.frozensets(st.integers(10, 15)), min_size=1, max_size=4),
    waits=st.lists(st.frozensets(st.integers(0, 5)), min_size=6, max_size=6),
    failed=st.lists(st.booleans(), min_size=6, max_size=6),
    depth=st.integers(0, 3),
    seed=st.integers(0, 999),
)
def test_those_who_failed_by_work_for_several_are_found_in_whatever_order_traces_come(
    serves: list[frozenset[int]],
    waits: list[frozenset[int]],
    failed: list[bool],
    depth: int,
    seed: int,
) -> None:
    bystanders = Bystanders()
    seen: list[Observation] = [
        observation(treated(number, tuple(those), depth=depth), False, number, f"t{number}")
        for number, those in enumerate(serves)
    ]
    seen += [
        observation(other(10 + i, tuple(those)), not failed[i], 10 + i, f"d{10 + i}")
        for i, those in enumerate(waits)
    ]
    random.Random(seed).shuffle(seen)
    for each in seen:
        if each.lineage.fired:
            bystanders.treat(each)
        else:
            bystanders.look(each, FAULTS)
    hurt = {
        f"d{10 + i}"
        for i in range(6)
        if failed[i]
        and (any(10 + i in those for those in serves) or waits[i] & set(range(len(serves))))
    }
    assert bystanders.work.hurt == hurt
    assert (bystanders.hurt is not None) == bool(hurt)


def test_who_meets_a_fault_that_stands_in_its_own_trace_was_not_drawn_and_met_it() -> None:
    """As where a consumer took messages of several requests in one batch."""
    bystanders = Bystanders()
    bystanders.look(observation(treated(1), True, 1, "fine"), FAULTS)
    assert (bystanders.work.met, bystanders.hurt) == ({"fine"}, None)
    bystanders.look(observation(treated(2), False, 2, "elsewhere"), frozenset({"b"}))
    assert bystanders.work.met == {"fine"}
    bystanders.look(observation(treated(3), False, 3, "lost"), FAULTS)
    assert bystanders.hurt is not None
    assert bystanders.hurt.startswith(
        "2 devices that nobody drew met the fault, and 1 of them failed"
    )


def test_how_often_a_fault_fires_in_one_request_is_counted() -> None:
    bystanders = Bystanders()
    for number, times in enumerate((1, 20, 3)):
        bystanders.treat(observation(treated(number, times=times), False, number))
    assert bystanders.work.counts() == {"met": 0, "hurt": 0, "most": 20}


def test_a_control_device_that_met_a_fault_is_no_control() -> None:
    """It would hide what the fault does: both arms failed."""
    experiment = Experiment(
        "e1", "GET /", BOOT, frozenset({"refused@a"}), (Fault(POINT, "refused"),), Settings()
    )
    experiment.arm(0.0)
    experiment.taken()
    hit = replace(treated(1), experiment="e1", arm="control")
    hit = replace(hit, would_fire=frozenset({"refused@a"}))
    experiment.observe(observation(hit, False, 1, "c"))
    assert experiment.arms["control"].devices == set()
    assert experiment.bystanders.work.hurt == {"c"}
    quiet = replace(lineage(span("root", kind="server")), experiment="e1", arm="control")
    experiment.observe(observation(replace(quiet, would_fire=hit.would_fire), True, 2, "d"))
    assert not experiment.bystanders.work.met - {"c"}
