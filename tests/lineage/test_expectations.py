"""What a trace still waits for, and how that is learned."""

from __future__ import annotations

import pytest

from ldfi.lineage.assembly import Assembler
from ldfi.lineage.expectations import RECENT, Expectations, Hole, Parts
from ldfi.lineage.span import Span
from ldfi.testing.spans import span

POINT = "api>http:GET:titles/titles"
QUIET, PATIENCE, MAX_AGE = 2.0, 10.0, 60.0


def serving(name: str, parent: str | None = None, service: str = "api", **more: str) -> Span:
    route = f"/{service}"
    return span(name, parent, "server", service, False, (1, 2), route=route, **more)


def calling(name: str, parent: str | None, point: str = POINT, **more: str) -> Span:
    return span(name, parent, "client", "api", False, (1, 2), point=point, **more)


def of(trace: int, spans: list[Span]) -> list[Span]:
    return [each._replace(trace_id=f"{trace:032x}") for each in spans]


def assembler(expected: Expectations | None = None) -> Assembler:
    return Assembler(QUIET, MAX_AGE, patience=PATIENCE, expected=expected or Expectations())


def handed_over(given: Assembler, until: float, since: float = 0.0) -> list[tuple[float, str]]:
    """When traces come out while nothing more comes in, and what each misses."""
    found, now = [], since
    while now <= until:
        found += [(now, trace.missing) for trace in given.pop(now)]
        now += 0.5
    return found


WHOLE = [serving("root"), calling("call", "root"), serving("served", "call", "titles")]


def test_a_span_of_an_inner_service_is_no_request_while_the_outer_ones_are_to_come() -> None:
    given = assembler()
    given.add([WHOLE[2]], 0.0)
    assert handed_over(given, 4.5) == []
    given.add(WHOLE[:2], 4.5)
    assert handed_over(given, 20.0, 4.5) == [(6.5, "")]
    assert given.fates == {"whole": 1}


def test_what_remains_without_a_root_is_counted_as_such() -> None:
    given = assembler()
    given.add([WHOLE[2]], 0.0)
    # Others like it could have shown that it is a request, but none came
    assert handed_over(given, 2 * MAX_AGE) == [(MAX_AGE, "root")]
    assert given.fates == {"rootless": 1}


def test_who_has_no_parent_is_a_request_at_once_and_so_is_what_the_edge_has_marked() -> None:
    for root in (serving("root"), serving("root", "device", edge="True")):
        given = assembler()
        given.add([root], 0.0)
        assert handed_over(given, 30.0) == [(QUIET, "")]


def test_an_edge_that_marks_nothing_is_known_by_being_left_alone() -> None:
    # Given requests of devices that send a traceparent
    given = assembler()
    for number in range(3):
        given.add(of(number, [serving("root", f"device{number}")]), 0.0)
    assert sorted(handed_over(given, 30.0)) == [(PATIENCE, ""), *[(PATIENCE + QUIET, "")] * 2]
    # Then the fourth is waited for no longer
    given.add(of(4, [serving("root", "device4")]), 30.0)
    assert handed_over(given, 60.0, 30.0) == [(30.0 + QUIET, "")]


def test_an_inner_service_never_becomes_an_edge_while_the_outer_spans_are_lost() -> None:
    given, now = assembler(), 0.0
    for number in range(10):
        given.add(of(number, WHOLE), now)
    handed_over(given, 5.0)
    for number in range(10, 20):
        given.add(of(number, WHOLE[2:]), 10.0)
    assert handed_over(given, 60.0, 10.0) == [(10.0 + PATIENCE, "root")] * 10


def test_a_mark_does_not_make_an_edge_of_what_usually_has_a_parent() -> None:
    # Given an edge behind a proxy that writes spans, too
    proxied = [
        span("proxy", kind="server", service="proxy"),
        calling("on", "proxy", "proxy>http:GET:api/"),
        serving("root", "on", edge="True"),
    ]
    given = assembler()
    for number in range(10):
        given.add(of(number, proxied), 0.0)
    handed_over(given, 5.0)
    # When the proxy's spans are late
    given.add(of(11, proxied[2:]), 10.0)
    # Then they are waited for
    assert handed_over(given, 60.0, 10.0) == [(10.0 + PATIENCE, "root")]


def test_two_requests_of_one_device_in_one_trace_do_not_wait_for_each_other() -> None:
    given = assembler()
    given.add([serving("one", "device", edge="True"), serving("two", "device", edge="True")], 0.0)
    assert handed_over(given, 30.0) == [(QUIET, "")]


def test_what_may_still_be_running_is_waited_for_longer_than_what_only_has_to_be_exported() -> None:
    given = assembler()
    given.add([serving("root"), calling("call", "not-yet-ended", "api>db:SELECT:shop")], 0.0)
    assert handed_over(given, 70.0) == [(MAX_AGE, "parent")]


def taught(answered: int, silent: int = 0, **call: str) -> Expectations:
    """What is known after so many calls of one point."""
    expected = Expectations()
    for _ in range(answered):
        expected.learn(Parts(WHOLE), waited=False)
    for _ in range(silent):
        expected.learn(Parts([WHOLE[0], calling("call", "root", **call)]), waited=True)
    return expected


def test_a_call_that_is_usually_answered_waits_for_the_answer_and_is_cut_without_it() -> None:
    given = assembler(taught(20))
    given.add(of(1, WHOLE[:2]), 0.0)
    given.add(of(2, WHOLE[:2]), 0.0)
    assert handed_over(given, 4.5) == []
    given.add(of(1, WHOLE[2:]), 4.5)
    assert handed_over(given, 30.0, 4.5) == [(6.5, ""), (PATIENCE, "answer")]
    assert given.fates == {"whole": 1, "cut": 1}


def test_of_a_point_nobody_knows_an_answer_is_waited_for_but_not_held_against_the_trace() -> None:
    given = assembler()
    given.add(WHOLE[:2], 0.0)
    assert handed_over(given, 30.0) == [(PATIENCE, "")]


@pytest.mark.parametrize("point", ["api>db:SELECT:shop/marks", "api>cache:get:home", "layout"])
def test_databases_caches_and_functions_are_not_expected_to_answer(point: str) -> None:
    given = assembler()
    given.add([WHOLE[0], calling("call", "root", point)], 0.0)
    assert handed_over(given, 30.0) == [(QUIET, "")]


def test_a_callee_that_never_answers_is_soon_waited_for_no_longer() -> None:
    given = assembler(taught(0, silent=3))
    given.add(WHOLE[:2], 0.0)
    assert handed_over(given, 30.0) == [(QUIET, "")]


def test_a_callee_that_lost_its_instrumentation_is_unlearned() -> None:
    expected = taught(10_000)
    assert expected.answered(WHOLE[1].operation)
    for _ in range(RECENT // 5):
        expected.learn(Parts(WHOLE[:2]), waited=True)
    assert expected.answered(WHOLE[1].operation) is False


def test_a_call_that_our_fault_kept_from_its_callee_needs_no_answer() -> None:
    given = assembler(taught(20))
    given.add([WHOLE[0], span("call", "root", failed=True, point=POINT, fired="error")], 0.0)
    assert handed_over(given, 30.0) == [(QUIET, "")]


def by_a_proxy(point: str = POINT, failed: bool = True) -> list[Span]:
    call = span("call", "root", "client", "api", failed, (1, 2), point=POINT)
    proof = span("proof", "call", "client", "api", True, (1, 2), point=point, fired="refused")
    return [WHOLE[0], call, proof]


def test_a_call_that_a_proxy_kept_from_its_callee_needs_no_answer() -> None:
    for expected in (Expectations(), taught(20)):
        given = assembler(expected)
        given.add(by_a_proxy(), 0.0)
        assert handed_over(given, 30.0) == [(QUIET, "")]


@pytest.mark.parametrize(
    "spans", [by_a_proxy("api>http:GET:else/titles"), by_a_proxy(failed=False)]
)
def test_a_fault_at_another_point_or_of_an_attempt_before_does_not_excuse_the_callee(
    spans: list[Span],
) -> None:
    given = assembler(taught(20))
    given.add(spans, 0.0)
    ((when, _),) = handed_over(given, 30.0)
    assert when == PATIENCE


def test_a_delay_that_was_outlasted_does_not_excuse_the_callee() -> None:
    given = assembler(taught(20))
    given.add([WHOLE[0], calling("call", "root", fired="delay")], 0.0)
    assert handed_over(given, 30.0) == [(PATIENCE, "answer")]


def test_calls_that_fail_are_judged_by_calls_that_fail() -> None:
    expected = taught(20)
    refused = [WHOLE[0], span("call", "root", failed=True, point=POINT)]
    for _ in range(3):
        expected.learn(Parts(refused), waited=True)
    assert expected.hole(Parts(refused)) is None
    assert expected.hole(Parts(WHOLE[:2])) is not None


def test_few_traces_are_lost_to_a_callee_that_answers_now_and_then() -> None:
    # Given a callee of which only every second answer is recorded
    given, cut = assembler(), 0
    for number in range(2_000):
        given.add(of(number, WHOLE if number % 2 else WHOLE[:2]), number * 0.5)
        cut += sum(bool(trace.missing) for trace in given.pop(number * 0.5))
    # Then one trace in ten is cut at most: those that keep the share at its mark
    assert 0 < cut < 200


def test_both_halves_of_a_call_may_have_one_id_as_zipkin_has_it() -> None:
    expected = taught(20)
    halves = [WHOLE[0], calling("call", "root"), serving("call", "root", "titles")]
    assert expected.hole(Parts(halves)) is None


def test_what_is_remembered_is_bounded() -> None:
    expected = Expectations(limit=10)
    for number in range(1_000):
        point = f"api>http:GET:titles/{number}"
        spans = [
            serving("root"),
            calling("call", "root", point),
            serving("served", "call", f"titles{number}"),
        ]
        expected.learn(Parts(spans), waited=False)
    assert len(expected) == 20


def test_a_span_that_comes_after_its_trace_passed_as_whole_is_counted_once_for_the_trace() -> None:
    given = assembler(taught(20))
    given.add(WHOLE, 0.0)
    assert handed_over(given, 5.0) == [(QUIET, "")]
    late = [span("x", "root", point="api>db:SELECT:shop"), span("y", "root")]
    assert given.add(late, 6.0) == late
    assert given.dropped == {"late": 2}
    assert given.fates == {"whole": 1, "late": 1}


def test_a_trace_that_nobody_has_used_can_be_reopened() -> None:
    given = assembler(taught(20))
    given.add(WHOLE, 0.0)
    (trace,) = given.pop(QUIET)
    late = given.add([span("x", "root", point="api>db:SELECT:shop")], 5.0)
    given.reopen(trace, late, 5.0)
    (again,) = given.pop(5.0 + QUIET)
    assert {each.span_id for each in again.spans} == {"root", "call", "served", "x"}
    assert +given.fates == {"whole": 1}
    assert not +given.dropped


def test_a_span_that_announces_calls_waits_for_them_and_is_cut_without_them() -> None:
    # Given a request that made two queries, one of which comes late or never
    root = serving("root", calls="2")
    queries = [calling(name, "root", "api>db:SELECT:shop") for name in ("one", "two")]
    given = assembler()
    given.add(of(1, [root, queries[0]]), 0.0)
    given.add(of(2, [root, queries[0]]), 0.0)
    assert handed_over(given, 4.5) == []
    given.add(of(1, queries[1:]), 5.0)
    assert handed_over(given, 60.0, 5.0) == [(7.0, ""), (PATIENCE, "call")]


def test_calls_of_functions_count_and_spans_that_are_no_calls_do_not() -> None:
    inside = [
        serving("root", calls="1"),
        span("function", "root", kind="internal", point="api>function:rank"),
        span("work", "function", kind="internal"),
    ]
    expected = Expectations()
    assert expected.hole(Parts(inside)) is None
    assert expected.hole(Parts([inside[0], span("work", "root", kind="internal")])) == Hole("call")
    assert expected.hole(Parts([serving("root", calls="rubbish")])) is None


SEND = "api>message:send:kafka/orders"
LATER = 10**12


def sent() -> list[Span]:
    return [serving("root"), span("send", "root", "producer", point=SEND)]


def taking(end: int, calls: str = "0") -> Span:
    return span("take", "send", "consumer", "worker", at=(1, end), calls=calls)


def test_a_consumer_that_is_over_in_time_is_expected_and_one_that_is_not_is_not() -> None:
    for end, expects in ((2, True), (LATER, False)):
        expected = Expectations()
        for _ in range(3):
            expected.learn(Parts([*sent(), taking(end)]), waited=False)
        assert expected.answered(sent()[1].operation) is expects
        assert expected.hole(Parts(sent())) == (Hole("answer") if expects else None)


def test_what_a_consumer_misses_that_goes_on_after_the_request_is_no_hole() -> None:
    expected = taught(20)
    call = span("call", "take", service="worker", point=POINT, at=(1, LATER))
    soon, later = [[*sent(), taking(end, calls="2"), call] for end in (2, LATER)]
    assert expected.hole(Parts(soon)) == Hole("call")
    assert expected.hole(Parts(later)) is None
    ongoing = [*sent(), call._replace(parent_id="has-not-ended")]
    assert expected.hole(Parts(ongoing)) == Hole("answer", announced=False)  # of the message


def test_a_call_in_time_within_a_consumer_that_goes_on_waits_for_the_answer() -> None:
    """It may be the one that shows that somebody waited."""
    call = span("call", "take", service="worker", point=POINT)
    assert taught(20).hole(Parts([*sent(), taking(LATER), call])) == Hole("answer")


def test_nothing_is_learned_of_what_goes_on_after_the_request() -> None:
    expected = Expectations()
    call = span("call", "take", service="worker", point=POINT, at=(1, LATER))
    for _ in range(5):
        expected.learn(Parts([*sent(), taking(LATER), call]), waited=True)
    assert expected.answered(call.operation) is None


def test_a_clock_that_is_wrong_makes_nothing_go_on() -> None:
    # Given an inner service whose clock is ahead, and of which only a query has come
    query = span("query", "served", service="titles", point="titles>db:SELECT:t", at=(LATER,) * 2)
    assert taught(20).hole(Parts([*WHOLE[:2], query])) == Hole("parent", running=True)


def test_a_span_that_has_reopened_its_trace_was_not_late() -> None:
    given = assembler(taught(20))
    given.add(WHOLE, 0.0)
    (trace,) = given.pop(QUIET)
    late = given.add([span("take", "call", "consumer", "worker")], 5.0)
    given.reopen(trace, late, 5.0)
    assert given.take_late() == []
    given.pop(5.0 + QUIET)
    # Only when it comes once more, and its trace is gone
    given.add(late, 20.0)
    assert [each.request for each in given.take_late()] == [WHOLE[0].operation]
