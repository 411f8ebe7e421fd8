"""The registry of points: what is known to have no injector, and what nobody knows."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.traffic.injectors import (
    EVERY_KIND,
    HEARD,
    MOST_CALLERS,
    MOST_PATTERNS,
    MOST_PROVED,
    PROVED,
    STALE,
    Injectors,
    lacking,
    to_install,
)
from ldfi.fit.protocol.reach import InjectorReport, PointPattern
from tests.experiments.domain.gates.test_maintenance import brute as stands_for

NOWHERE: frozenset[str] = frozenset()
POINT = "api>http:GET:ratings/titles/*"


def heard(*patterns: str, now: float = 0.0, known: Injectors | None = None) -> Injectors:
    known = Injectors() if known is None else known
    known.hear(InjectorReport("python/1", tuple(map(PointPattern.parse, patterns))), now)
    return known


def again(known: Injectors) -> Injectors:
    """The same after a restart, by way of what is put on record."""
    rows = {name: row for name, row in known.unkept().items() if row is not None}
    return Injectors.from_json(json.loads(json.dumps(rows)))


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.text("x/*:[", min_size=1, max_size=5)), max_size=4
    ),
    st.sampled_from("abc"),
    st.text("x/*:[", min_size=1, max_size=7),
)
def test_a_point_has_an_injector_if_a_pattern_of_its_caller_names_it(
    said: list[tuple[str, str]], caller: str, rest: str
) -> None:
    known = heard(*(f"{one}>{pattern}" for one, pattern in said))
    words = known.words(f"{caller}>{rest}")
    mine = [pattern for one, pattern in said if one == caller]
    if not mine:
        assert words is None
    else:
        named = any(stands_for(pattern, rest) for pattern in mine)
        assert words == (EVERY_KIND if named else NOWHERE)


@given(st.lists(st.sampled_from(["a>x|delay", "a>x|error,status", "a>*", "a>y"]), min_size=1))
def test_what_injectors_can_do_adds_up_in_any_order(said: list[str]) -> None:
    known, other = heard(*said), Injectors()
    for each in reversed(said):
        heard(each, known=other)
    for point in ("a>x", "a>y", "a>z"):
        assert known.words(point) == other.words(point)
        for kind in ("delay", "error", "status:503", "refused"):
            ways = [PointPattern.parse(each) for each in said]
            possible = any(
                stands_for(way.rest, point[2:])
                and (way.kinds is None or kind.partition(":")[0] in way.kinds)
                for way in ways
            )
            assert lacking(f"{kind}@{point}", known.words(point) or NOWHERE) is not possible


def test_of_a_caller_that_never_reported_nothing_is_known() -> None:
    known = heard("web>http:*")
    assert known.words(POINT) is None
    assert list(known.limits([POINT])) == []
    assert known.without([POINT]) == {}


def test_a_point_that_no_report_names_says_what_to_install() -> None:
    known = heard("api>db:*", "api>http:*:prices/*|delay")
    assert known.without([POINT]) == {
        POINT: "fit in api (Python, Go, Node), or ldfi-proxy between it and ratings"
    }
    assert list(known.limits([POINT, "api>http:GET:prices/x", "api>db:SELECT:shop/marks"])) == [
        ("api>http:GET:prices/x", {"delay"}, ""),
        (POINT, NOWHERE, ""),
    ]
    assert "client library" in to_install("api>db:SELECT:shop/marks")
    assert "@fit.point" in to_install("api>cache:get")


def test_what_has_fired_has_an_injector_whatever_is_reported() -> None:
    # Given an old injector in the service, that reports nothing, and a proxy that reports
    known = Injectors()
    known.prove([f"error@{POINT}"], 0.0)
    heard("api>http:*:prices/*", known=known)
    # Then what was proved counts, and what neither shows has none
    assert known.words(POINT) == EVERY_KIND
    assert known.words("api>http:GET:other/") == NOWHERE
    known.expire(PROVED + 1)
    assert known.words(POINT) is None  # the report is older than a day as well


def test_a_report_that_is_not_repeated_is_forgotten() -> None:
    known = heard("api>db:*")
    heard("api>rpc:*", now=HEARD, known=known)
    known.expire(HEARD + 1)
    assert known.words("api>db:SELECT:shop/marks") == NOWHERE
    assert known.words("api>rpc:Get:/shop.Prices") == EVERY_KIND
    known.expire(2 * HEARD + 1)
    assert known.words("api>db:SELECT:shop/marks") is None
    assert known.unkept() == {"api": None}


def test_a_restart_knows_the_same() -> None:
    known = heard("api>http:*|delay,error", "web>db:*")
    known.prove([f"delay@{POINT}"], 3.0)
    other = again(known)
    for point in (POINT, "api>db:x", "web>db:x", "web>http:x"):
        assert other.words(point) == known.words(point)
    assert other.reports() == known.reports()
    known.expire(HEARD + 1)
    other.expire(HEARD + 1)
    assert again(other).words(POINT) == again(known).words(POINT) is None


def test_a_report_that_says_nothing_new_is_put_on_record_once_an_hour() -> None:
    known = heard("api>db:*")
    known.kept(known.unkept(), 0.0)
    before = known.changes
    heard("api>db:*", now=STALE / 2, known=known)
    assert (known.unkept(), known.changes) == ({}, before)
    heard("api>db:*", now=STALE, known=known)
    assert list(known.unkept()) == ["api"]


def test_memory_is_bounded() -> None:
    known = Injectors()
    for i in range(MOST_CALLERS + 10):
        heard(f"s{i}>http:*", known=known)
    assert len(known.reports()) == MOST_CALLERS
    assert known.words("s3>http:x") is None
    for i in range(MOST_PATTERNS + 10):
        heard(f"s20>http:{i}", known=known)
    known.prove((f"error@s20>rpc:{i}" for i in range(MOST_PROVED + 10)), 0.0)
    kept = again(known).reports()["s20"]["python/1"]
    assert len(kept) == MOST_PATTERNS


ROWS = "api>db:SELECT:shop/rows"
_LIBRARIES = ["psycopg2", "redis", "httpx", "fit"]
_injectors = st.dictionaries(
    st.sampled_from(["python/1", "python/2", "ldfi-proxy/1"]),
    st.tuples(
        st.sets(st.sampled_from(["db:*", "http:*", "db:SELECT:*|delay", "http:*|error"])),
        st.none() | st.sets(st.sampled_from([*_LIBRARIES, "*"])),
    ),
)
_called_by = st.dictionaries(
    st.sampled_from([ROWS, POINT]), st.sets(st.sampled_from([*_LIBRARIES, ""]), min_size=1)
)


@given(_injectors, _called_by, st.sets(st.sampled_from([ROWS, POINT])), st.booleans())
def test_a_point_is_reached_by_whoever_has_hold_of_what_calls_it(
    injectors: dict[str, tuple[set[str], set[str] | None]],
    called_by: dict[str, set[str]],
    fired: set[str],
    restarted: bool,
) -> None:
    known = Injectors()
    for injector, (points, libraries) in injectors.items():
        held = () if libraries is None else (f"library:{each}" for each in libraries)
        said = [PointPattern.parse(f"api>{each}") for each in (*sorted(points), *held)]
        known.hear(InjectorReport(injector, tuple(said)), 0.0)
    known.meet({point: frozenset(names) for point, names in called_by.items()}, 1.0)
    known.prove([f"error@{point}" for point in fired], 2.0)
    known = again(known) if restarted else known
    reported = any(points or libraries for points, libraries in injectors.values())
    for point in (ROWS, POINT):
        words = known.words(point)
        if not reported:
            assert words is None
            continue
        called = called_by.get(point, {""})
        ways = [
            PointPattern.parse(f"api>{each}")
            for points, held in injectors.values()
            if not held or "" in called or "*" in held or not held.isdisjoint(called)
            for each in points
            if stands_for(each.partition("|")[0], point.partition(">")[2])
        ]
        assert words is not None
        for kind in ("delay", "error", "refused"):
            possible = any(each.kinds is None or kind in each.kinds for each in ways)
            assert lacking(f"{kind}@{point}", words) is not (
                possible or (point in fired and not ways)
            )
        if not words:
            assert known.without([point])[point].startswith("fit in api")


def test_a_library_that_nobody_has_hold_of_is_named() -> None:
    known = heard("api>db:*", "api>library:fit", "api>library:redis")
    known.meet({ROWS: frozenset({"psycopg2"}), "api>db:GET:redis": frozenset({"redis"})}, 1.0)
    why = "psycopg2 is instrumented by OpenTelemetry and unknown to fit in api"
    assert list(known.limits([ROWS, "api>db:GET:redis"])) == [(ROWS, NOWHERE, why)]
    install = f"fit in api, for a client library that fit knows: {why}"
    assert known.without([ROWS]) == {ROWS: install}
    assert known.by_kind_only() == {}
    # Another process of the service, with an older injector, speaks of kinds alone
    known.hear(InjectorReport("python/0", (PointPattern.parse("api>db:*"),)), 2.0)
    assert known.words(ROWS) == EVERY_KIND
    assert known.by_kind_only() == {"api": ["python/0"]}


def test_what_traffic_says_of_libraries_is_kept_noticed_and_forgotten() -> None:
    known = heard("api>db:*", "api>library:redis")
    known.meet({ROWS: frozenset({"psycopg2"})}, 0.0)
    known.kept(known.unkept(), 0.0)
    before = known.changes
    known.meet({ROWS: frozenset({"psycopg2"})}, STALE / 2)
    assert (known.changes, known.unkept()) == (before, {})
    known.meet({ROWS: frozenset({"psycopg2"})}, STALE)
    assert (known.changes, list(known.unkept())) == (before, ["api"])
    heard("api>db:*", "api>library:redis", now=PROVED, known=known)
    known.meet({ROWS: frozenset({"redis"})}, PROVED)  # the service has changed its client
    assert known.words(ROWS) == EVERY_KIND
    known.expire(PROVED + STALE + 1)
    assert known.words(ROWS) == EVERY_KIND
    assert "psycopg2" not in json.dumps(known.unkept())
