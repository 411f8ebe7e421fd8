"""Classes are learned from traffic as it comes, and change when, and only when, the system does."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldfi.experiments.domain.traffic.catalogue import DAY, EXPIRY, SWEEP, Catalogue, KnownClass
from ldfi.experiments.domain.traffic.class_traffic import WHY_ASIDE, Traffic
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.experiments.domain.traffic.shares import shares
from ldfi.fit.protocol.predicate import Predicate
from ldfi.lineage.lineage import Lineage
from ldfi.testing.programs import Call, Run, Step
from ldfi.testing.spans import lineage, span
from tests.experiments.domain.traffic.test_traffic import needed
from tests.kit.observations import observation

Serve = Callable[[random.Random], str]
"""Points that a request calls, a letter each; those after ``!`` fail."""

_numbers = itertools.count(1)


def request(
    points: str, path: str = "/t", query: str = "", service: str = "api", success: bool = True
) -> Observation:
    return numbered(run_of(points, path, query, service), success)


@lru_cache
def run_of(points: str, path: str, query: str, service: str) -> Lineage:
    lost = points.partition("!")[2]
    calls = [
        span(p, "root", service=service, failed=p in lost, point=p) for p in points.replace("!", "")
    ]
    asked = span(
        "root", kind="server", service=service, at=(0, 9), method="GET", path=path, query=query
    )
    return lineage(asked, *calls)


def numbered(run: Lineage, success: bool = True) -> Observation:
    number = next(_numbers)
    return observation(replace(run, start=number), success, number, f"d{number}")


def feed(catalogue: Catalogue, requests: Iterable[Observation], now: float = 0.0) -> Catalogue:
    for each in requests:
        catalogue.observe(each, now)
    return catalogue


def kinds(catalogue: Catalogue) -> list[tuple[str, str]]:
    return [(change.kind, change.known.name) for change in catalogue.changes()]


def only(catalogue: Catalogue) -> KnownClass:
    (known,) = catalogue.classes.values()
    return known


def test_a_class_is_created_when_its_entry_has_had_enough_requests() -> None:
    catalogue = feed(Catalogue(), [request("ab") for _ in range(19)])
    assert not catalogue.classes
    feed(catalogue, [request("ab")], now=60.0)
    known = only(catalogue)
    assert kinds(catalogue) == [("created", "GET /t")]
    assert kinds(catalogue) == []
    assert (known.version, known.consistency, known.hit_rate, known.unfit) == (1, 1.0, 1.0, "")
    assert known.traffic.good == known.sample == 20
    assert known.traffic.usual_support() == {"a", "b"}
    assert (known.first_seen, known.last_seen) == (0.0, 60.0)
    assert catalogue.class_of({"method": "GET", "path": "/t", "query.x": "1"}, "api") is known
    assert catalogue.class_of({"method": "PUT", "path": "/t"}, "api") is None
    assert catalogue.class_of({"method": "GET", "path": "/t"}, "other") is None


def test_evidence_keeps_accumulating() -> None:
    catalogue = feed(Catalogue(), [request("ab") for _ in range(20)])
    feed(catalogue, [request("ab", success=False) for _ in range(5)])
    feed(catalogue, [request("a!b") for _ in range(1975)])
    known = only(catalogue)
    assert known.traffic.good == 1995
    assert [(c, f) for c, f, _ in known.traffic.frequent()] == [
        (frozenset({"error@a", "error@b", "delay@a", "delay@b"}), frozenset()),
        # Nobody said how it failed, so it does not speak of a fault that might be injected
        (frozenset({"error@a", "error@b", "delay@a", "delay@b"}), frozenset({"failed@b"})),
    ]
    assert kinds(catalogue) == [("created", "GET /t")]


def test_an_entry_is_divided_where_its_requests_tell_themselves_apart() -> None:
    rng = random.Random(2)
    mixed = [
        request("abc", query="full=1") if rng.random() < 0.3 else request("ab") for _ in range(200)
    ]
    catalogue = feed(Catalogue(), mixed)
    supports = {name: k.traffic.usual_support() for name, k in catalogue.classes.items()}
    assert supports == {
        "GET /t without query.full": {"a", "b"},
        "GET /t with query.full": {"a", "b", "c"},
    }
    assert sum(known.traffic.good for known in catalogue.classes.values()) == 200
    for each in mixed[:50]:
        known = catalogue.class_of(each.lineage.features, "api")
        assert known is not None
        assert known.traffic.usual_support() == each.lineage.support


def test_two_services_with_the_same_predicate_have_classes_of_two_names() -> None:
    catalogue = Catalogue()
    for service in ("api", "backoffice"):
        feed(catalogue, [request("a", service=service) for _ in range(20)])
    assert set(catalogue.classes) == {"GET /t", "GET /t at backoffice"}
    known = catalogue.class_of({"method": "GET", "path": "/t"}, "backoffice")
    assert known is not None
    assert (known.name, known.service) == ("GET /t at backoffice", "backoffice")


def test_why_a_class_may_not_be_explored() -> None:
    catalogue = feed(Catalogue(), [request("ab" if i % 5 else "c") for i in range(20)])
    feed(catalogue, [request("ab" if i % 5 else "a", path="/cached") for i in range(20)])
    feed(catalogue, [request("a", path="/bad", success=i == 0) for i in range(20)])
    root = span("tick", kind="server")
    feed(catalogue, [numbered(lineage(root, span("a", "tick"))) for _ in range(20)])
    names = ("GET /t", "GET /bad", "any request operation is tick")
    scattered, bad, job = (catalogue.classes[name] for name in names)
    assert scattered.unfit == ""
    assert scattered.unfit_for(0.8) is None
    assert "either on a (80%) or on c (20%)" in (scattered.unfit_for(0.9) or "")
    cached = catalogue.classes["GET /cached"]
    assert (cached.consistency, cached.unfit_for(0.9)) == (0.8, None)
    assert shares(cached.traffic) == {"b": 0.8}
    assert "only 1 good" in bad.unfit
    assert bad.unfit_for(0.0) == bad.unfit
    assert "no HTTP" in job.unfit


def test_a_class_without_traffic_expires() -> None:
    catalogue = feed(Catalogue(), [request("a") for _ in range(20)])
    feed(catalogue, [request("b", path="/u") for _ in range(20)], now=DAY)
    catalogue.changes()
    catalogue.expire(EXPIRY - 1)
    assert len(catalogue.classes) == 2
    feed(catalogue, [request("b", path="/u")], now=EXPIRY + SWEEP)
    assert kinds(catalogue) == [("expired", "GET /t")]
    feed(catalogue, [request("a") for _ in range(20)], now=EXPIRY + SWEEP)
    assert kinds(catalogue) == [("created", "GET /t")]


def test_a_part_of_an_entry_that_expired_comes_back_in_a_new_version() -> None:
    rng = random.Random(3)
    catalogue = feed(
        Catalogue(),
        [request(*rng.choice([("ab", "/t", ""), ("a", "/t", "x=1")])) for _ in range(500)],
    )
    feed(catalogue, [request("ab") for _ in range(40)], now=5 * DAY)
    catalogue.changes()
    feed(catalogue, [request("ab") for _ in range(40)], now=EXPIRY + 1)
    assert kinds(catalogue) == [("expired", "GET /t with query.x")]
    assert set(catalogue.classes) == {"GET /t without query.x"}
    feed(catalogue, [request("a", query="x=1")], now=EXPIRY + 2)
    assert kinds(catalogue) == [("created", "GET /t with query.x")]
    back = catalogue.classes["GET /t with query.x"]
    assert (back.version, back.traffic.good) == (2, 1)
    assert back.unfit


def test_memory_is_bounded_and_loners_give_way() -> None:
    catalogue = Catalogue(max_classes=5)
    feed(catalogue, [request("a", path=f"/{name}") for name in "abcdefgh"])
    assert catalogue.dropped == {"forgotten": 3}
    for name in "abcde":
        feed(catalogue, [request("a", path=f"/{name}") for _ in range(20)])
    assert len(catalogue.classes) == 5
    catalogue.dropped.clear()
    feed(catalogue, [request("a", path="/a")])  # so another one is travelled least
    feed(catalogue, [request("a", path="/f")])
    assert catalogue.dropped == {"displaced": 1}
    assert set(catalogue.classes) == {f"GET /{name}" for name in "acde"}


def test_junk_displaces_what_is_travelled_least_and_nothing_else() -> None:
    # Given a full catalogue, in which every class has more requests than the one before
    catalogue, now = Catalogue(max_classes=20), 0.0
    for now in range(0, 3_600, 60):
        for number in range(20):
            feed(catalogue, [request("a", service=f"used{number}")] * (1 + number), float(now))
    assert len(catalogue.classes) == 20
    # When a stranger asks for junk, and somebody begins to use a new path in earnest
    for number in range(100):
        now += 1.0
        feed(catalogue, [request("a", service=f"junk{number}")], now)
        feed(catalogue, [request("a", service="new") for _ in range(3)], now)
    # Then what is used is known, the new path too, and what was hardly used is not
    left = {known.service for known in catalogue.classes.values()}
    assert {f"used{number}" for number in range(4, 20)} | {"new"} <= left
    assert len(catalogue.classes) <= 20


def test_the_rate_is_that_of_the_last_minutes() -> None:
    catalogue, now = Catalogue(), 0.0
    for now in range(0, 3600, 2):
        catalogue.observe(request("a"), float(now))
    known = only(catalogue)
    assert known.rate(float(now)) == pytest.approx(30, rel=0.02)
    assert known.rate(now + 600.0) == pytest.approx(30 / 2.718, rel=0.02)
    young = feed(Catalogue(), [request("a") for _ in range(20)], now=5.0)
    assert only(young).rate(5.0) == pytest.approx(20)


def test_bounds_that_make_no_sense_are_refused() -> None:
    for bounds in ({"sample": 100}, {"min_sample": 0}, {"max_classes": 0}):
        with pytest.raises(ValueError, match="wanted"):
            Catalogue(**bounds)


_PROGRAMS: dict[str, tuple[Serve, Serve]] = {
    "adds a call": (lambda _: "ab", lambda _: "abc"),
    "drops a call": (lambda _: "ab", lambda _: "a"),
    "swaps a call": (lambda _: "ab", lambda _: "ac"),
    "drops a call, behind a cache": (
        lambda r: r.choice(["ab", "abc"]),
        lambda r: r.choice(["a", "ac"]),
    ),
    "adds a call for some": (
        lambda r: r.choice(["ab", "a"]),
        lambda r: r.choice(["ab", "a", "abd", "ad"]),
    ),
}


@pytest.mark.parametrize("what", _PROGRAMS)
@given(seed=st.integers(0, 2**32), before=st.integers(500, 2500))
@settings(max_examples=6)  # thousands of requests each
def test_a_changed_program_drifts_within_two_samples(what: str, seed: int, before: int) -> None:
    rng = random.Random(seed)
    old, new = _PROGRAMS[what]
    catalogue = feed(Catalogue(), [request(old(rng)) for _ in range(before)])
    assert kinds(catalogue) == [("created", "GET /t")]
    feed(catalogue, [request(new(rng)) for _ in range(1000)])
    changes = catalogue.changes()
    assert {change.kind for change in changes} == {"changed"}
    known = only(catalogue)
    assert known.version == 1 + len(changes) <= 3
    appeared = frozenset().union(*(change.appeared for change in changes))
    vanished = frozenset().union(*(change.vanished for change in changes))
    points = [set().union(*(serve(rng) for _ in range(99))) for serve in (old, new)]
    assert appeared == points[1] - points[0]
    # Of a point that a few old requests in the first new sample still had, nothing more is said
    assert vanished == points[0] - points[1] or (appeared and not vanished)
    # Then it is stable again, and knows what it relies on now
    feed(catalogue, [request(new(rng)) for _ in range(1000)])
    assert not catalogue.changes()
    assert known.traffic.usual_support() >= points[1]


def _varied(rng: random.Random) -> Observation:
    """A stable program: a cache hit half of the time, calls that fail, requests that do."""
    points = rng.choice(["ab", "a"]) + rng.choice(["c", "c", "c", "d"])
    if rng.random() < 0.1:
        points += "!e"
    query = f"by={rng.choice('vwxyz')}&{rng.choice('klm')}=yes"
    return request(points, query=query, success=rng.random() > 0.05)


@given(seed=st.integers(0, 2**32), hours=st.sampled_from([0.0, 0.02, 0.5]))
@settings(max_examples=10)  # thousands of requests each
def test_a_stable_class_never_drifts(seed: int, hours: float) -> None:
    rng, catalogue = random.Random(seed), Catalogue()
    for number in range(3000):
        catalogue.observe(_varied(rng), number * hours * 3600)
    assert kinds(catalogue) == [("created", "GET /t")]
    assert only(catalogue).version == 1
    assert only(catalogue).unfit_for(0.95)


def _signature(catalogue: Catalogue) -> object:
    return {
        name: (
            known.consistency,
            known.hit_rate,
            known.sample,
            known.version,
            known.traffic.good,
            known.traffic.usual_support(),
            {(relied_on, failed) for relied_on, failed, _ in known.traffic.frequent()},
            known.traffic.topology,
        )
        for name, known in catalogue.classes.items()
    }


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "ab", "abc", "a!b"]),
            st.sampled_from(["", "x=1", "x=2", "x=1&y=1"]),
            st.integers(1, 200),
            st.booleans(),
        ),
        min_size=2,
    ),
    st.randoms(use_true_random=False),
)
@settings(deadline=None)
def test_the_order_of_requests_within_a_sample_changes_nothing(
    groups: list[tuple[str, str, int, bool]], rng: random.Random
) -> None:
    requests = [
        request(points, query=query, success=success)
        for points, query, count, success in groups
        for _ in range(count)
    ][:200]
    requests = list(itertools.islice(itertools.cycle(requests), 200))
    shuffled = rng.sample(requests, len(requests))
    one, other = (feed(Catalogue(sample=200), each) for each in (requests, shuffled))
    assert _signature(one) == _signature(other)
    for each in requests:  # and every request belongs to one class
        holding = [k for k in one.classes.values() if k.predicate.holds(each.lineage.features)]
        assert len(holding) == 1


@given(seed=st.integers(0, 2**32), count=st.integers(0, 1500), later=st.integers(0, 1000))
@settings(max_examples=15)  # thousands of requests each
def test_a_catalogue_survives_a_restart(seed: int, count: int, later: int) -> None:
    rng = random.Random(seed)

    def some() -> Observation:
        if rng.random() < 0.5:
            return _varied(rng)
        return request(*rng.choice([("ab", "/s", ""), ("a", "/s", "x=1")]))

    kept = feed(Catalogue(), [some() for _ in range(count)], now=7.0)
    rows = [json.loads(json.dumps(row)) for row in kept.to_json()]
    rng.shuffle(rows)
    restored = Catalogue.from_json(rows)
    assert restored.changes() == []
    assert set(restored.classes) == set(kept.classes)
    for name, known in kept.classes.items():
        again = restored.classes[name]
        assert needed(again.traffic) == needed(known.traffic)
        assert again.to_json() == known.to_json()
        assert again.request_class == known.request_class
        assert Predicate.from_json(again.predicate.to_json()) == known.predicate
    feed(restored, [some() for _ in range(later)], now=8.0)
    assert all(k in {"created", "expired"} for k, _ in kinds(restored))


def test_a_restart_does_not_hide_a_change() -> None:
    kept = feed(Catalogue(), [request("ab") for _ in range(700)])
    restored = Catalogue.from_json(kept.to_json())
    feed(restored, [request("ac") for _ in range(500)])
    (change,) = restored.changes()
    assert change.kind == "changed"
    assert (set(change.appeared), set(change.vanished)) == ({"c"}, {"b"})
    assert only(restored).version == 2
    assert only(restored).traffic.good == 500


def test_a_release_that_reads_another_parameter_divides_the_entry_anew() -> None:
    rng, catalogue = random.Random(4), Catalogue()

    def serve(parameter: str) -> Observation:
        x, y = rng.randrange(2), rng.randrange(2)
        query = "&".join(name for name, given in (("x=1", x), ("y=1", y)) if given)
        return request("ab" if {"x": x, "y": y}[parameter] else "a", query=query)

    feed(catalogue, [serve("x") for _ in range(1000)])
    assert set(catalogue.classes) == {"GET /t with query.x", "GET /t without query.x"}
    feed(catalogue, [serve("y") for _ in range(1000)])
    assert set(catalogue.classes) == {"GET /t with query.y", "GET /t without query.y"}
    assert all(known.consistency == 1 for known in catalogue.classes.values())


def test_what_a_simulated_program_relies_on_is_learned() -> None:
    program = Call("root", (Step("optional", (Call("o"),)), Step("critical", (Call("c"),))))
    catalogue = Catalogue()
    for number in range(100):
        nature = frozenset({"nature@o"} if number % 3 == 0 else ())
        run = Run(frozenset(), nature).execute(program)
        feed(catalogue, [numbered(lineage(*run.spans), run.good)])
    known = only(catalogue)
    assert known.traffic.usual_support() == {"o", "c"}
    assert {failed for _, failed, _ in known.traffic.frequent()} == {
        frozenset(),
        frozenset({"status:500@o"}),
    }


def test_what_nature_tried_is_left_out_where_a_record_does_not_say_how_calls_failed() -> None:
    catalogue = feed(Catalogue(), [request("ab") for _ in range(20)])
    feed(catalogue, [request("a!b") for _ in range(30)])
    written = only(catalogue).traffic.to_json()
    assert {f for _, f, _ in Traffic.from_json(written).frequent()} == {
        frozenset(),
        frozenset({"failed@b"}),
    }
    # Given a record of the days in which every failure was taken for an error
    del written["rules"]
    # Then the traffic is left to show it again
    assert {f for _, f, _ in Traffic.from_json(written).frequent()} == {frozenset()}


@pytest.mark.parametrize("inside", [None, "work"], ids=["alone", "inside work of a new root"])
def test_a_call_in_a_trace_of_its_own_is_no_class_where_its_service_serves_requests(
    inside: str | None,
) -> None:
    def loose(service: str) -> Observation:
        point = "api>http:GET:rates/all"
        call = span("call", inside, "client", service, method="GET", url="http://r/", point=point)
        work = [span(inside, None, "internal", service)] if inside else []
        return numbered(lineage(*work, call))

    catalogue = feed(Catalogue(), [request("a") for _ in range(20)])
    feed(catalogue, [loose("api") for _ in range(40)])
    (known,) = catalogue.classes.values()
    assert catalogue.dropped["no_request"] == 40
    assert known.traffic.not_looked_at() == {"api>http:GET:rates/all": WHY_ASIDE["loose"]}
    # Who serves nothing that is seen may be where requests begin, a browser say
    feed(catalogue, [loose("browser") for _ in range(20)])
    assert {each.service for each in catalogue.classes.values()} == {"api", "browser"}
