"""Campaigns against brute force: what they find is what there is, and nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.checker.solving import check
from ldfi.experiments.domain.campaign.campaign import ENROLLED_AT_ONCE, Campaign
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.catalogue import ClassChange, KnownClass
from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.lineage.span import Span
from ldfi.solver import Explorer, OutOfTime
from ldfi.testing.programs import ANSWERED, REFUSED, Call, Run, Step, faults_of, points_of
from ldfi.testing.spans import span
from tests.experiments.simulated import (
    Application,
    Faults,
    a_campaign,
    a_class,
    errors_of,
    explore,
    failing_sets,
    serving,
    traffic_of,
    working,
)


def found_by(campaign: Campaign) -> set[Faults]:
    (exploration,) = campaign.explorations.values()
    return {faults for faults, _ in exploration.knowledge.findings()}


@given(working(points=5), st.integers(0, 3), st.sampled_from([None, 3]))
def test_all_minimal_sets_of_errors_are_found(program: Call, seed: int, cap: int | None) -> None:
    # Given any program that works when nothing fails
    # When a campaign over errors has nothing left to try
    bounds = Settings(kinds=("error",), seed=seed, max_union=cap, min_traffic=5)
    campaign = explore(serving(program), bounds)
    # Then its findings are the minimal failing sets, exactly
    assert found_by(campaign) == failing_sets(program, errors_of(program), 2)
    # And its certificate is borne out by its evidence
    (exploration,) = campaign.explorations.values()
    assert check(exploration.knowledge.certificate()["certificate"]) == []


@pytest.mark.parametrize(("masked", "found"), [(ANSWERED, "a>b"), (REFUSED, "b>c")])
@pytest.mark.parametrize("seed", range(6))
def test_one_way_to_fail_says_nothing_of_the_other(seed: int, masked: str, found: str) -> None:
    """A service may be gone or answer 500; nobody concludes from one that is masked that the other
    is, neither from its answer when what it calls fails, nor from its absence."""
    # Given a service of which one way to fail is masked, and nothing else of it
    below = Step("critical", (Call("b>c"),))
    program = Call("root", (Step("optional", (Call("a>b", (below,)),), masks=(masked,)),))
    # When all that is left is tried
    campaign = explore(serving(program), Settings(kinds=("error",), min_traffic=5, seed=seed))
    # Then what is not masked is found, and nothing else
    assert found_by(campaign) == {frozenset({f"error@{found}"})}


def minimal(program: Call, sets: Iterable[Faults]) -> set[Faults]:
    """Those that hurt of what can happen at once, and none that holds another one."""
    hurts = {f for f in sets if possible(program, f) and not Run(f).execute(program).good}
    return {f for f in hurts if not any(other < f for other in hurts)}


def assert_closed(campaign: Campaign) -> None:
    """Nothing is open, and the certificate is borne out by its evidence."""
    (exploration,) = campaign.explorations.values()
    certificate = exploration.knowledge.certificate()["certificate"]
    assert not certificate["open"]
    assert check(certificate) == []


def possible(program: Call, faults: Faults) -> bool:
    """Whether none of these calls is inside another one of them, where it would never be made."""
    points = {fault.partition("@")[2] for fault in faults}
    pending: list[tuple[Call, bool]] = [(program, False)]
    while pending:
        call, refused = pending.pop()
        hit = call.point in points
        if hit and refused:
            return False
        pending += [(each, refused or hit) for step in call.steps for each in step.calls]
    return True


@given(working(points=5, picky=True), st.integers(0, 3), st.sampled_from([None, 3]))
def test_where_handlers_know_some_kinds_of_failure_all_that_hurts_is_found(
    program: Call, seed: int, cap: int | None
) -> None:
    # Given any program whose handlers tell a refused call from an answer that is an error
    bounds = Settings(kinds=("error",), seed=seed, max_union=cap, min_traffic=5)
    # When a campaign over errors has nothing left to try
    campaign = explore(serving(program), bounds)
    # Then its findings are the minimal failing sets of what can happen at once, exactly
    sets = [c for n in (1, 2) for c in itertools.combinations(errors_of(program), n)]
    assert found_by(campaign) == minimal(program, map(frozenset, sets))
    assert_closed(campaign)


def test_a_kind_that_was_not_asked_for_is_not_tried() -> None:
    # Given two calls, one inside the other, without either of which nothing goes
    inner = Step("critical", (Call("b>http:GET:c/"),))
    program = Call("root", (Step("critical", (Call("a>http:GET:b/", (inner,)),)),))
    # When a campaign tries kinds of which error is none
    kinds = ("refused", "status:500")
    campaign = explore(serving(program), Settings(kinds=kinds, each_kind=True, min_traffic=5))
    # Then each of these is found at each of them, and nothing else
    points = ("a>http:GET:b/", "b>http:GET:c/")
    assert found_by(campaign) == {frozenset({f"{k}@{p}"}) for k in kinds for p in points}


def test_what_only_a_fallback_calls_is_known_to_be_inside_it() -> None:
    # Given a fallback that traffic never reaches, whose handler knows a refused call and no other
    inner = Call("p2", (Step("critical", (Call("p3"),)),))
    second = Call("p1", (Step("optional", (inner,), masks=(REFUSED,)),))
    program = Call("root", (Step("fallback", (Call("p0"), second)),))
    # When a campaign over errors has nothing left to try
    campaign = explore(serving(program), Settings(kinds=("error",), min_traffic=5))
    # Then that p2 is survived has not been taken to prove the same of p3, which makes p2 fail
    # otherwise
    assert found_by(campaign) == {
        frozenset({"error@p0", other}) for other in ("error@p1", "error@p3")
    }


@given(
    working(points=4, picky=True, named="api>http:GET:p{}/"),
    st.integers(0, 3),
    st.sampled_from([None, 3]),
    st.sampled_from([("refused", "status:500"), ("status:500",), ("refused", "empty")]),
)
def test_of_several_kinds_all_that_hurts_is_found_and_each_for_itself(
    program: Call, seed: int, cap: int | None, kinds: tuple[str, ...]
) -> None:
    # Given any program whose handlers know some kinds of failure and not others
    bounds = Settings(kinds=kinds, each_kind=True, seed=seed, max_union=cap, min_traffic=5)
    # When a campaign over several kinds has nothing left to try
    campaign = explore(serving(program), bounds)
    # Then its findings are the minimal failing sets of what can happen at once, exactly
    at = {point: [f"{kind}@{point}" for kind in kinds] for point in points_of(program)}
    single = [frozenset({fault}) for faults in at.values() for fault in faults]
    couples = itertools.combinations(at.values(), 2)
    pairs = [frozenset(pair) for a, b in couples for pair in itertools.product(a, b)]
    assert found_by(campaign) == minimal(program, (*single, *pairs))
    assert_closed(campaign)


@given(working(points=4), st.integers(0, 3))
def test_delays_each_finding_fails_and_no_failing_fault_is_missed(program: Call, seed: int) -> None:
    # Given any program that works when nothing fails
    # When a campaign over errors and delays has nothing left to try
    bounds = Settings(seed=seed, max_union=None, min_traffic=5)
    found = found_by(explore(serving(program), bounds))
    # Then each finding fails, and each single failing fault is found or is said by a weaker one
    assert all(not Run(faults).execute(program).good for faults in found)
    points = {fault.partition("@")[2] for faults in found for fault in faults if len(faults) == 1}
    faults = faults_of(points_of(program))
    for fault in itertools.chain.from_iterable(failing_sets(program, faults, 1)):
        assert frozenset({fault}) in found or fault.partition("@")[2] in points


SHORT, LONG = "delay:0.001..0.002", "delay:p50=5..p99=8"


@given(working(points=3), st.integers(0, 3))
def test_drawn_lengths_hurt_and_are_survived_each_for_itself(program: Call, seed: int) -> None:
    # Given any program that works when nothing fails
    # When a campaign tries errors, lengths that nobody minds and such as outlast all patience
    kinds = ("error", SHORT, LONG)
    bounds = Settings(kinds=kinds, each_kind=True, seed=seed, max_union=None, min_traffic=5)
    campaign = explore(serving(program), bounds)
    # Then each finding fails, each single failing fault is found, and a short one hides no long one
    found = found_by(campaign)
    assert all(not Run(faults).execute(program).good for faults in found)
    assert not [fault for faults in found for fault in faults if fault.startswith(SHORT)]
    faults = [f"{kind}@{point}" for point in points_of(program) for kind in kinds]
    assert {*failing_sets(program, faults, 1)} <= found
    (exploration,) = campaign.explorations.values()
    assert check(exploration.knowledge.certificate()["certificate"]) == []


def shared_database(faults: Faults) -> tuple[list[Span], bool]:
    """Two optional services answer less without their database, and their caller, who has a
    replacement for a service that fails, takes what they say at its word."""
    spans, degraded = [], 0
    fails = {point: kind for kind, _, point in (fault.partition("@") for fault in faults)}
    for at, service in enumerate(("bookmarks", "history"), start=1):
        point = f"api>http:GET:{service}/rows"
        fired, times = fails.get(point, ""), (10 * at, 10 * at + 9)
        spans.append(span(service, "root", at=times, failed=bool(fired), point=point, fired=fired))
        if not fired:
            query = f"{service}>http:POST:db/query"
            fired, name = fails.get(query, ""), f"{service}-db"
            broken = bool(fired)
            degraded += broken
            spans.append(span(name, service, failed=broken, point=query, fired=fired, peer="db"))
    good = degraded < 2
    return [*spans, span("root", kind="server", at=(0, 99), failed=not good)], good


@given(st.integers(0, 50))
def test_a_replacement_that_never_gets_its_turn_hides_no_shared_database(seed: int) -> None:
    # Given two services that survive the loss of their database, each alone, as above
    bounds = Settings(kinds=("error",), seed=seed, max_union=None, min_traffic=5)
    # When a campaign has nothing left to try, in whatever order it tried
    campaign = explore(shared_database, bounds)
    # Then it has found that they share it
    assert found_by(campaign) == {frozenset({"down@db"})}


def test_a_solver_out_of_time_ends_the_exploration_and_leaves_the_rest_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def too_late(_: Explorer) -> None:
        raise OutOfTime("no hypothesis was found in time")

    monkeypatch.setattr(Explorer, "propose", too_late)
    campaign = explore(shared_database, Settings(min_traffic=5))

    (exploration,) = campaign.explorations.values()
    assert campaign.state == "finished"
    assert exploration.knowledge.certificate()["certificate"]["open"]


def two_classes(bounds: Settings) -> tuple[Campaign, dict[str, KnownClass]]:
    """A campaign that has just taken up two classes."""
    application = Application(shared_database)
    classes = {n: a_class(traffic_of(application, 10), n) for n in ("GET /a", "GET /b")}
    campaign = a_campaign(bounds)
    campaign.enroll(classes, lambda _: ())
    return campaign, classes


def propose(campaign: Campaign, classes: dict[str, KnownClass], now: float) -> list[str]:
    return [e.request_class for e in campaign.propose(classes, lambda _n, _e: None, 9, now)]


def test_what_stands_in_the_way_of_all_classes_is_asked_for_once() -> None:
    # Given a class whose experiment was refused
    campaign, classes = two_classes(Settings(min_traffic=5, concurrency=1))
    assert propose(campaign, classes, 100.0) == ["GET /a"]
    campaign.hold(campaign.running["GET /a"], "another runs on it", 105.0)
    # Then the other class is next, and once a budget is spent nobody is before the time is over
    assert propose(campaign, classes, 100.0) == ["GET /b"]
    campaign.hold(campaign.running["GET /b"], "budget spent", 105.0, all_classes=True)
    assert propose(campaign, classes, 104.9) == []
    assert propose(campaign, classes, 105.0) == ["GET /a"]


def test_a_class_that_is_held_for_its_drift_says_so_until_it_is_released() -> None:
    campaign, classes = two_classes(Settings(min_traffic=5, on_drift="pause"))
    assert not campaign.follow(ClassChange("changed", classes["GET /a"]))
    for _ in range(2):
        campaign.enroll(classes, lambda _: ())
        assert propose(campaign, classes, 100.0) in ([], ["GET /b"])
    assert "release it" in campaign.waiting["GET /a"]

    assert campaign.release("GET /a")
    assert not campaign.release("GET /a")
    campaign.enroll(classes, lambda _: ())
    assert propose(campaign, classes, 100.0) == ["GET /a"]


def test_a_campaign_is_complete_when_every_class_that_matters_is_explored() -> None:
    campaign, classes = two_classes(Settings(min_traffic=5))
    assert not campaign.complete(classes)
    campaign.explorations["GET /a"].finished = True
    assert not campaign.complete(classes)
    campaign.explorations["GET /b"].finished = True
    assert campaign.complete(classes)
    # A class with hardly a request does not matter, one with some does, held or unfit ones do not
    young, some = Traffic(), traffic_of(Application(shared_database), 10)
    assert campaign.complete(classes | {"GET /c": a_class(young, "GET /c")})
    grown = a_class(some, "GET /c")
    assert not campaign.complete(classes | {"GET /c": grown})
    assert campaign.complete(classes | {"GET /c": replace(grown, sample=0)})
    # Nothing at all is not complete, nor is what was asked for by name and never seen
    assert not campaign.complete({})
    named = a_campaign(Settings(min_traffic=5), "GET /a", "GET /x")
    named.enroll(classes, lambda _: ())
    named.explorations["GET /a"].finished = True
    assert not named.complete(classes)


def test_many_classes_are_taken_up_some_at_a_time_and_none_is_left_out() -> None:
    traffic = traffic_of(Application(shared_database), 10)
    classes = {f"GET /{n}": a_class(traffic, f"GET /{n}") for n in range(2 * ENROLLED_AT_ONCE + 5)}
    campaign = a_campaign(Settings(min_traffic=5))
    taken = []
    for _ in range(3):
        campaign.enroll(classes, lambda _: ())
        taken.append(len(campaign.explorations))
        assert not campaign.complete(classes)

    assert taken == [ENROLLED_AT_ONCE, 2 * ENROLLED_AT_ONCE, len(classes)]
