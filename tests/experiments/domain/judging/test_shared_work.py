"""Work for several requests at once: who met a fault, whatever comes first, against brute force."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.judging.bystanders import Bystanders
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.fit.protocol.faults import Fault
from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.span import Links, Span, Trace
from ldfi.testing.spans import lineage, span
from tests.experiments.simulated import BOOT
from tests.kit.observations import observation

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
