"""What a run teaches, against brute force over every set of faults."""

from __future__ import annotations

from itertools import chain, combinations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ldfi.lineage import evidence
from ldfi.lineage.blame import blame
from ldfi.lineage.clauses import GoodRuns
from ldfi.lineage.message_waits import SKEW
from ldfi.lineage.operation import operation
from ldfi.lineage.span import Span
from ldfi.testing.programs import Call, Run, Step, faults_of, points_of
from ldfi.testing.spans import TRACE, lineage, span, tree
from tests.lineage.drawn import programs, sets_of


def subsets(items: list[str]) -> list[frozenset[str]]:
    sizes = range(len(items) + 1)
    return [frozenset(c) for c in chain.from_iterable(combinations(items, n) for n in sizes)]


def test_what_happened_below_a_failed_call_is_no_support() -> None:
    learned = lineage(
        span("root", kind="server"),
        span("a", "root"),
        span("b", "root", failed=True),
        span("c", "b"),
        span("d", "b", failed=True),
    )
    assert learned.support == {"a"}
    assert learned.failed == {"b"}


def test_a_retry_that_succeeded_is_support_and_its_first_attempt_a_failure() -> None:
    learned = lineage(
        span("root", kind="server"),
        span("1", "root", failed=True, point="p"),
        span("2", "root", point="p"),
    )
    assert learned.support == {"p"}
    assert learned.failed == {"p"}


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"status": "500"}, "status:500"),
        ({"status": "503"}, "status:503"),
        ({"status": "503", "fired": "delay"}, "status:503"),
        ({"error_type": "ConnectError"}, "refused"),
        ({"error_type": "aiohttp.client_exceptions.ClientConnectorError"}, "refused"),
        ({"error_type": "aiohttp.client_exceptions.ClientConnectorDNSError"}, "unresolved"),
        ({"error_type": "socket.gaierror"}, "unresolved"),
        ({"thrown": "java.net.UnknownHostException"}, "unresolved"),
        ({"fired": "unresolved", "error_type": "httpx.ConnectError"}, "unresolved"),
        ({"status": "504"}, "status:504"),
        ({"rpc_status": "14"}, "error"),
        ({"rpc_status": "UNAVAILABLE"}, "error"),
        ({"rpc_status": "13"}, "grpc:INTERNAL"),
        ({"error_type": "redis.exceptions.ConnectionError", "db": "redis"}, "error"),
        ({"error_type": "ConnectionError"}, "exception:ConnectionError"),
        ({"error_type": "sqlalchemy.exc.OperationalError"}, "exception:OperationalError"),
        ({"fired": "delay"}, "timeout"),
        ({"fired": "error", "status": "500"}, "error"),
        ({"fired": "refused", "error_type": "httpx.ConnectError"}, "refused"),
        ({"fired": "status:404", "status": "404"}, "status:404"),
        ({"fired": "status:503", "status": "503"}, "status:503"),
        ({"fired": "empty", "status": "200"}, "empty"),
        ({"fired": "timeout", "error_type": "httpx.ReadTimeout"}, "timeout"),
        ({"fired": "exception:MyError"}, "exception:MyError"),
        ({"fired": "grpc:UNAVAILABLE", "rpc_status": "14"}, "grpc:UNAVAILABLE"),
        ({}, "failed"),
    ],
)
def test_a_failed_call_proves_its_own_kind_and_no_other(fields: dict[str, str], kind: str) -> None:
    what = operation("api", "a", "client", 2, False, (("point", "a"), *fields.items()))
    learned = lineage(span("root", kind="server"), Span(TRACE, "a", "root", 1, 2, what))
    # What was survived has a name; it speaks of a refused connection only where it looks like one
    assert learned.survived == learned.lost == {f"{kind}@a"}
    assert ("error@a" in learned.relied_on) == (kind != "error")


def test_a_silent_caller_is_told_by_its_callee_how_the_call_failed() -> None:
    learned = lineage(
        span("root", kind="server"),
        span("a", "root", failed=None),
        span("b", "a", kind="server", service="b", failed=True, status="500"),
    )
    assert learned.survived == {"status:500@a"}


def test_faults_are_read_from_the_spans_on_which_they_fired() -> None:
    learned = lineage(
        span("root", kind="server", experiment="e1", arm="treatment"),
        span("a", "root", failed=True, point="a", fired="error"),
        span("b", "root", failed=True, point="b", fired="delay"),
        span("c", "root", point="c", fired="delay"),
        span("d", "root", point="d", would_fire="error"),
    )
    assert learned.fired == {"error@a", "delay@b", "delay@c"}
    assert learned.would_fire == {"error@d"}
    assert learned.timed_out == {"b"}
    assert (learned.experiment, learned.arm) == ("e1", "treatment")


def test_a_fault_that_hit_a_consumer_after_the_request_was_over_is_no_exposure() -> None:
    def order(begun: int, done: int) -> tuple[frozenset[str], ...]:
        learned = lineage(
            span("root", kind="server", at=(0, 100)),
            span("send", "root", "producer", point="send"),
            span("take", "send", "consumer", "worker", at=(3, done), point="take"),
            span("hit", "take", point="p", fired="delay", failed=True, at=(begun, done)),
            span("spared", "take", point="q", would_fire="error", at=(begun, done)),
        )
        return learned.fired, learned.would_fire, learned.timed_out

    hit = (frozenset({"delay@p"}), frozenset({"error@q"}), frozenset({"p"}))
    # Given a consumer that was over in time; one that was hit when the request was over; and one
    # that was hit before: perhaps it is the fault that made it outlast who waited for it
    assert order(5, 50) == hit
    assert order(200, 2 * SKEW) == (frozenset(), frozenset(), frozenset())
    assert order(5, 2 * SKEW) == hit


def test_a_kind_that_was_survived_proves_itself_alone() -> None:
    http, below = "api>http:GET:ratings/", "ratings>db:SELECT:records/marks"
    run = tree(
        span("root", kind="server"),
        span("a", "root", point=http, fired="status:404", status="404"),
        span("b", "root", point=below),
    )

    assert evidence.survived(run) == evidence.fired(run) == {f"status:404@{http}"}
    kinds = ("error", "delay", "refused", "timeout", "status:404", "status:500", "sql:deadlock")
    assert evidence.relied_on(run, kinds) == {
        *(f"{kind}@{http}" for kind in ("error", "delay", "refused", "timeout", "status:500")),
        *(f"{kind}@{below}" for kind in ("error", "delay", "timeout", "sql:deadlock")),
    }


def test_of_a_point_that_a_retry_saved_every_kind_is_relied_on() -> None:
    http = "api>http:GET:ratings/"
    run = tree(
        span("root", kind="server"),
        span("a", "root", point=http, fired="refused", error_type="httpx.ConnectError"),
        span("b", "root", point=http),
    )

    relied_on = {f"error@{http}", f"refused@{http}"}
    assert evidence.relied_on(run, ("error", "refused")) == relied_on


def test_a_later_attempt_of_the_clients_own_saves_a_call_of_any_kind() -> None:
    http = "api>http:GET:ratings/"
    run = tree(
        span("root", kind="server"),
        span("a", "root", point=http, fired="refused", let_through="true", status="200"),
    )

    assert evidence.failed(run) == frozenset()
    assert evidence.fired(run) == {f"refused@{http}"}


def test_a_delay_below_a_failed_call_is_relied_on() -> None:
    # Given an optional call whose first step went well and whose second failed
    optional = Call("o", (Step("critical", (Call("slow"),)), Step("critical", (Call("broken"),))))
    program = Call("root", (Step("optional", (optional,)),))
    run = Run(frozenset({"error@broken"})).execute(program)
    assert run.good
    # When the first step hangs, nobody's patience ends and the request is late
    assert not Run(frozenset({"delay@slow"})).execute(program).good
    # Then the good run must not acquit it, nor a refusal where an answer was survived
    relied_on = {"error@o", "delay@o", "delay@slow", "delay@broken"}
    assert evidence.relied_on(tree(*run.spans)) == relied_on


def test_a_delay_that_an_error_kept_from_happening_is_not_acquitted() -> None:
    # Given an optional call with a slow step, and a good run in which it failed at once
    program = Call("root", (Step("optional", (Call("o", (Step("critical", (Call("slow"),)),)),)),))
    assert not Run(frozenset({"delay@slow"})).execute(program).good
    good_runs = GoodRuns()
    for faults in (frozenset[str](), frozenset({"error@o"})):
        run = Run(faults).execute(program)
        assert run.good
        good_runs.add(lineage(*run.spans))
    # Then the clause of that run holds the delay it never met, and no error below what failed
    base, masked = good_runs.clauses()
    assert base.faults == {"error@o", "error@slow", "delay@o", "delay@slow"}
    assert masked.faults == {"delay@o", "delay@slow"}
    assert (base.origin, masked.origin) == ("observed", "injected")


def test_variety_is_not_redundancy() -> None:
    # Given two unperturbed runs, one of which found its answer in a cache
    good_runs = GoodRuns()
    good_runs.add(lineage(span("root", kind="server"), span("cache", "root")))
    good_runs.add(lineage(span("root", kind="server"), span("db", "root")))
    # Then they make one clause
    (clause,) = good_runs.clauses()
    assert clause.faults >= {"error@cache", "error@db"}
    assert clause.runs == 2


def test_a_delay_that_was_outlasted_is_excluded_by_name() -> None:
    good_runs = GoodRuns()
    good_runs.add(lineage(span("root", kind="server"), span("a", "root", point="a")))
    good_runs.add(lineage(span("root", kind="server"), span("a", "root", point="a", fired="delay")))
    assert [c.faults for c in good_runs.clauses()] == [{"error@a", "delay@a"}, {"error@a"}]


@given(programs(points=5), st.data())
def test_errors_alone_no_set_disjoint_from_the_support_hurts(
    program: Call, data: st.DataObject
) -> None:
    # Given any program and any good run under errors, some of them nature's
    points = points_of(program)
    run = Run(
        frozenset(f"error@{p}" for p in data.draw(sets_of(points))),
        frozenset(f"nature@{p}" for p in data.draw(sets_of(points))),
    ).execute(program)
    assume(run.good)
    # Then every set of errors that does not meet the support is survived
    clause = evidence.relied_on(tree(*run.spans), kinds=("error",))
    for others in subsets(sorted({f"error@{point}" for point in points} - clause)):
        assert Run(others).execute(program).good


@given(programs(points=5), st.data())
def test_errors_and_delays_no_set_that_misses_a_clause_hurts(
    program: Call, data: st.DataObject
) -> None:
    # Given any program, its unperturbed run, and some good runs under errors and delays
    faults = faults_of(points_of(program))
    good_runs = GoodRuns()
    for injected in [frozenset[str](), *data.draw(st.lists(sets_of(faults), max_size=4))]:
        run = Run(injected).execute(program)
        if run.good:
            good_runs.add(lineage(*run.spans))
    clauses = [clause.faults for clause in good_runs.clauses()]
    assert clauses
    # Then no set of errors, and no set of delays, hurts without meeting every clause
    for kind in ("error", "delay"):
        for hypothesis in subsets([f for f in faults if f.startswith(kind)]):
            if not Run(hypothesis).execute(program).good:
                assert all(hypothesis & clause for clause in clauses)


@given(programs(points=5), st.data())
def test_blame_names_faults_that_fired(program: Call, data: st.DataObject) -> None:
    # Given a run that failed by errors injected into it
    points = points_of(program)
    assume(points)
    faults = frozenset(f"error@{p}" for p in data.draw(st.frozensets(st.sampled_from(points))))
    run = Run(faults).execute(program)
    assume(not run.good)
    base = evidence.support(tree(*Run(frozenset()).execute(program).spans))
    suspects = blame(tree(*run.spans), base)
    # Then there are suspects, and each of them is a point where a fault fired
    assert suspects
    assert {f"error@{point}" for point in suspects} <= run.faults
    # And where everything happens one after the other, they are enough to fail it again
    if not _parallel(program):
        again = frozenset(f"error@{point}" for point in suspects)
        assert not Run(again).execute(program).good


def _parallel(call: Call) -> bool:
    return call.parallel or any(_parallel(c) for step in call.steps for c in step.calls)
