"""When a process that is gone was killed by an experiment, and when it went for reasons of its
own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.judging.killed_process import AWAITED_SECONDS, LATER, Instances
from ldfi.fit.protocol.mark import Mark
from ldfi.lineage.killed_process import Death, deaths
from ldfi.lineage.span import Span
from ldfi.testing.spans import span

POINT = "shop>http:GET:prices/list"


def marked(arm: str = "treatment", instance: str = "a") -> Mark:
    return Mark(arm, "e1", instance, "refused", POINT)


def traced(*others: Span, said: str = str(marked()), **call: object) -> list[Span]:
    """A request that web sends to shop, which leaves a mark there; and what else is told of it."""
    caller = span("call", "root", service="web", **{"failed": True, "at": (1, 90), **call})  # type: ignore[arg-type]
    mark = span("m", "call", "internal", "shop", at=(30, 30), mark=said)
    return [span("root", None, "server", "web", at=(0, 100)), caller, mark, *others]


ANSWERED = {"failed": True, "status": "500"}


@pytest.mark.parametrize(
    ("spans", "dead"),
    [
        (traced(), True),
        (traced(error_type="ECONNRESET"), True),
        (traced(error_type="ConnectionResetError"), True),
        (traced(status="502"), True),
        (traced(status="503"), True),
        (traced(rpc="grpc", rpc_status="14"), True),
        (traced(failed=False, kind="producer", point="web>message:send:kafka/x"), True),
        (traced()[2:], True),
        (traced(failed=False), False),
        (traced(failed=False, status="200"), False),
        (traced(failed=False, status="404"), False),
        (traced(status="500"), False),
        (traced(rpc="grpc", rpc_status="13"), False),
        (traced(error_type="ReadTimeout"), False),
        (traced(error_type="asyncio.CancelledError"), False),
        (traced(error_type="AbortError"), False),
        (traced(rpc="grpc", rpc_status="4"), False),
        (traced(span("served", "call", "server", "shop", at=(10, 60))), False),
        (traced(span("asked", "served", "client", "shop", True, at=(20, 40))), False),
        (traced(span("asked", "served", "client", "shop", at=(11, 20))), True),
        (traced(span("other", "root", "client", "news", at=(11, 80))), True),
        (traced(said="2 treatment e1 a refused@x>y:z"), False),
        (traced()[:2], False),
    ],
)
def test_a_trace_tells_whether_its_process_died(spans: list[Span], dead: bool) -> None:
    assert bool(deaths(spans)) is dead
    assert bool(deaths(reversed(spans))) is dead


def through_a_proxy(*others: Span) -> list[Span]:
    """The same where a proxy stands beside shop: both its spans are below what shop has sent."""
    mark = span("m", "asked", "internal", "shop", at=(30, 30), mark=str(marked()))
    proof = span("proof", "asked", "client", "shop", True, at=(29, 31), point=POINT)
    return [*traced()[:2], mark, proof, *others]


@pytest.mark.parametrize(
    ("spans", "dead"),
    [
        (through_a_proxy(), True),
        (through_a_proxy(span("asked", "served", "client", "shop", True, at=(20, 40))), False),
        (through_a_proxy(span("served", "call", "server", "shop", at=(10, 60))), False),
        # shop has no tracing, and passes on what web has sent
        (through_a_proxy(span("asked", "root", "client", "web", True, at=(2, 80))), False),
    ],
)
def test_what_a_proxy_says_for_a_service_is_no_sign_of_life(spans: list[Span], dead: bool) -> None:
    assert bool(deaths(spans)) is dead
    assert bool(deaths(reversed(spans))) is dead


def died(arm: str, instance: str, at: int) -> Death:
    return Death("shop", marked(arm, instance), at)


SECOND = 1_000_000_000
told = st.tuples(
    st.sampled_from(["treatment", "control"]),
    st.sampled_from("abcd"),
    st.integers(0, 60),
    st.booleans(),
)


def watched(history: list[tuple[str, str, int, bool]]) -> Instances:
    """Instances of which these requests told: arm, instance, second, whether it died then."""
    instances = Instances()
    for number, (arm, instance, second, dies) in enumerate(history):
        at, trace = second * SECOND, f"t{number}"
        instances.mark(trace, marked(arm, instance), at, float(second))
        instances.settle(trace, [died(arm, instance, at)] if dies else [])
    return instances


@given(st.lists(told, max_size=12))
def test_a_kill_ends_an_instance_under_treatment(history: list[tuple[str, str, int, bool]]) -> None:
    found = watched(history).killed()

    last = {name: max(s for _, each, s, _ in history if each == name) for _, name, _, _ in history}
    ends = {(arm, each) for arm, each, at, dies in history if dies and at + 1 >= last[each]}
    under = {each for arm, each in ends if arm == "treatment"}
    beside = {each for _, each in ends} - under
    assert found == ({"shop": frozenset({POINT})} if len(under) > len(beside) else {})


@given(st.lists(told.map(lambda each: (*each[:3], False)), max_size=12))
def test_a_deployment_or_autoscaler_is_no_kill(history: list[tuple[str, str, int, bool]]) -> None:
    """Instances go and others come, between requests that all were told of to their end."""
    assert watched(history).killed() == {}


def test_trouble_in_which_both_arms_die_is_no_suspicion() -> None:
    assert watched([("treatment", "a", 1, True), ("control", "b", 2, True)]).killed() == {}
    assert watched([("treatment", "a", 1, True), ("control", "a", 1, True)]).killed()


def test_who_tells_of_more_later_lives() -> None:
    instances = watched([("treatment", "a", 1, True)])
    assert instances.killed() == {"shop": frozenset({POINT})}
    instances.mark("later", marked("control"), 1 * SECOND + LATER + 1, 3.0)
    assert instances.killed() == {}


def test_a_trace_that_has_grown_tells_anew() -> None:
    instances = watched([("treatment", "a", 1, True)])
    instances.settle("t0", [])
    assert instances.killed() == {}


def test_what_a_mark_announces_is_waited_for_within_bounds() -> None:
    instances = Instances()
    instances.mark("t", marked(), SECOND, 1.0)
    assert instances.awaited(2.0)
    assert not instances.awaited(1.0 + AWAITED_SECONDS)
    instances.settle("t", [])
    instances.mark("t", marked(), SECOND, 2.0)  # delivered twice
    assert not instances.awaited(2.0)
