"""Runs kept from one exploration to the next: they save runs, and change nothing that is said."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ldfi.checker.document import FORMAT, EvidenceFile
from ldfi.checker.verify import Against, verify
from ldfi.explore.pytest.evidence import class_evidence
from ldfi.explore.pytest.loop import OTHERWISE, Explored, explore
from ldfi.explore.pytest.marker import Bounds
from ldfi.explore.pytest.run import Execute, Run
from ldfi.explore.pytest.survived import CHANGES, Basis, SurvivedRuns
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.points import Point
from ldfi.testing.programs import Call, Step
from ldfi.testing.programs import Run as Simulated
from ldfi.testing.spans import lineage, span
from tests.explore.pytest.test_loop import PAGE, found_by, running, simulated
from tests.lineage.drawn import programs

CALLER = "unknown"
"""Who calls the points of simulated programs."""


def basis(key: str = "code", *declared: str) -> Callable[[], Basis]:
    return lambda: Basis(key, frozenset(declared or {CALLER}))


class Counted:
    """A test of a simulated program that counts what is run. ``chance``: which of its runs under
    faults fail by chance."""

    def __init__(self, program: Call, chance: frozenset[int] = frozenset()) -> None:
        self.execute, self.log = running(program), list[tuple[Fault, ...]]()
        self.chance = chance

    def __call__(self, faults: tuple[Fault, ...]) -> Run:
        self.log.append(faults)
        run = self.execute(faults)
        flaky = bool(faults) and len(self.log) in self.chance
        return replace(run, passed=False, error="by chance") if flaky else run


def explored(
    execute: Execute, earlier: object = None, ask: Callable[[], Basis] | None = None, **bounds: Any
) -> tuple[Explored, Any]:
    """What comes of it, and what is kept, as it comes back from a file."""
    survived = SurvivedRuns(ask or basis(), earlier)
    result = explore("t", execute, Bounds(**bounds), survived=survived)
    return result, json.loads(json.dumps(survived.document()))


def told(result: Explored) -> tuple[object, ...]:
    certificate = dict(result.certificate or {})
    sets = [result.refuted, result.never_fired, result.open_sets, result.ignored]
    return (result.verdict, found_by(result), *sets, result.open, certificate.get("findings"))


@given(programs(points=6), st.integers(0, 3), st.integers(1, 3))
def test_what_was_survived_is_not_run_again_and_the_same_is_found(
    program: Call, seed: int, size: int
) -> None:
    assume(Simulated(frozenset()).execute(program).good)
    first, kept = explored(Counted(program), max_size=size, seed=seed)
    again = Counted(program)

    second, kept_then = explored(again, kept, max_size=size, seed=seed)

    assert told(second) == told(first)
    assert second.runs + second.kept == first.runs
    assert second.runs == len(again.log)
    assert kept_then == kept
    survived = {tuple(each["faults"]) for each in kept["runs"]} if kept else set()
    for faults in survived:
        assert Simulated(frozenset(faults)).execute(program).good
    made_all_the_same = [f for f in again.log if tuple(sorted(map(str, f))) in survived]
    rechecks = sum(each.purpose != "explore" for each in second.records)
    assert len(made_all_the_same) <= 1 + rechecks


@given(programs(points=5), programs(points=5), st.integers(0, 3))
def test_what_is_declared_to_have_changed_is_explored_anew(
    before: Call, now: Call, seed: int
) -> None:
    assume(all(Simulated(frozenset()).execute(each).good for each in (before, now)))
    _, kept = explored(Counted(before), seed=seed)
    anew, _ = explored(Counted(now), seed=seed)

    second, _ = explored(Counted(now), kept, basis("other code"), seed=seed)

    assert (second.kept, second.runs) == (0, anew.runs)
    assert told(second) == told(anew)


@given(programs(points=5), programs(points=5), st.integers(0, 3))
def test_a_change_of_what_is_called_shows_without_being_declared(
    before: Call, now: Call, seed: int
) -> None:
    assume(all(Simulated(frozenset()).execute(each).good for each in (before, now)))
    calls = [simulated(each, frozenset()).lineage.called for each in (before, now)]
    assume(calls[0] != calls[1])
    _, kept = explored(Counted(before), seed=seed)
    anew, _ = explored(Counted(now), seed=seed)

    second, _ = explored(Counted(now), kept, seed=seed)

    assert (second.kept, told(second)) == (0, told(anew))


LATE = Call("root", tuple(Step("optional", (Call(name),)) for name in ("a", "c", "d")))
"""How :data:`FALLBACK` looks while the spans of ``b`` come late."""
FALLBACK = Call(
    "root",
    (
        Step("fallback", (Call("a"), Call("b"))),
        *(Step("optional", (Call(name),)) for name in ("c", "d")),
    ),
)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_doubted_is_not_kept(seed: int) -> None:
    survived = SurvivedRuns(basis())
    doubted = explore(
        "t", running(LATE), Bounds(seed=seed), doubt=lambda: "7 spans came late", survived=survived
    )
    assert (doubted.verdict, doubted.reason) == ("inconclusive", "7 spans came late")

    second, _ = explored(running(FALLBACK), survived.document(), seed=seed)

    assert (second.kept, second.verdict) == (0, "harmful")


def test_nobody_is_told_why_nothing_is_kept_who_did_not_ask() -> None:
    assert explore("t", running(LATE), Bounds()).not_kept == ""
    assert explored(running(LATE), ask=Basis)[0].not_kept


OPTIONAL = Call("root", tuple(Step("optional", (Call(f"p{i}"),)) for i in range(6)))
CRITICAL = Call("root", tuple(Step("critical", (Call(f"p{i}"),)) for i in range(6)))


def test_the_first_kept_run_is_made_all_the_same_and_tells_of_a_change() -> None:
    """The same calls, and nothing declared: only that nothing is survived any more."""
    _, kept = explored(Counted(OPTIONAL))

    second, then = explored(Counted(CRITICAL), kept)

    assert (second.kept, second.not_kept) == (0, OTHERWISE)
    assert found_by(second) == {frozenset({f"error@p{i}"}) for i in range(6)}
    assert then["runs"] == []


@given(programs(points=5), st.integers(0, 3), st.frozensets(st.integers(1, 30)))
def test_a_failure_is_never_kept(program: Call, seed: int, chance: frozenset[int]) -> None:
    assume(Simulated(frozenset()).execute(program).good)
    first, kept = explored(Counted(program, chance), seed=seed)
    assume(kept is not None)

    for each in kept["runs"]:
        faults = tuple(each["faults"])
        made = [record.faults == faults and record.outcome == "passed" for record in first.records]
        after = first.records[len(made) - made[::-1].index(True) :]
        failed = [record for record in after if record.outcome == "failed"]
        assert not any(set(record.fired) <= set(faults) for record in failed)


def test_a_length_that_was_drawn_is_kept_by_its_name() -> None:
    drawn, kept_from = "delay:5..8", Call("root", (Step("optional", (Call("a", impatient=True),)),))
    first, kept = explored(Counted(kept_from), kinds=("error", drawn), each_kind=True)
    again = Counted(kept_from)

    second, _ = explored(again, kept, kinds=("error", drawn), each_kind=True)

    assert {tuple(each["faults"]) for each in kept["runs"]} == {("error@a",), (f"{drawn}@a",)}
    assert first.verdict == second.verdict == "tolerated"
    assert second.kept >= 1


def test_whoever_is_in_play_and_not_declared_keeps_everything_from_being_kept() -> None:
    _, kept = explored(Counted(PAGE))
    elsewhere = basis("code", "somebody else")

    second, then = explored(Counted(PAGE), kept, elsewhere)

    assert (second.kept, then) == (0, None)
    assert second.not_kept == f"{CALLER} (not declared)"


def test_what_only_a_failure_brings_into_play_has_to_be_declared_as_well() -> None:
    """A fallback that nobody declared: the runs that reach it are not kept."""
    fallback = Call("root", (Step("fallback", (Call("app>http:GET:a/"), Call("app>http:GET:b/"))),))

    _, kept = explored(Counted(fallback), ask=basis("code", "app", "a"))
    _, all_kept = explored(Counted(fallback), ask=basis("code", "app", "a", "b"))

    assert kept["runs"] == []
    assert [each["faults"] for each in all_kept["runs"]] == [["refused@app>http:GET:a/"]]


@pytest.mark.parametrize("kind", ["internal", "client"])
def test_a_point_written_by_hand_that_names_no_peer_is_its_callers_own(kind: str) -> None:
    """Where a library made the call there is somebody, although nobody knows who."""
    own = span("get", "root", kind, "app", point="app>cache:get")
    seen = lineage(span("root", kind="server", service="app"), own)

    found = Basis("code", frozenset({"app"})).undeclared(seen, {})

    assert found == ([] if kind == "internal" else ["app>cache:get (not declared)"])


@pytest.mark.parametrize("given", ["app>cache:get:home", "app>db:SELECT:recordsdb/marks"])
def test_a_point_written_by_hand_that_names_its_peer_is_not(given: str) -> None:
    seen = lineage(
        span("root", kind="server", service="app"),
        span("get", "root", "internal", "app", point=given),
    )

    (found,) = Basis("code", frozenset({"app"})).undeclared(seen, {})

    assert found == f"{Point.parse(given).peer} (not declared)"


def test_a_point_written_by_hand_that_somebody_answers_is_not() -> None:
    seen = lineage(
        span("root", kind="server", service="app"),
        span("get", "root", "internal", "app", point="app>cache:get"),
        span("answered", "get", "server", "shared"),
    )

    assert any("shared" in each for each in Basis("", frozenset({"app"})).undeclared(seen, {}))


def test_it_is_said_what_has_changed_and_what_comes_is_kept() -> None:
    def made_of(**parts: str) -> Callable[[], Basis]:
        return lambda: Basis(repr(parts), frozenset({CALLER}), parts=parts)

    first, kept = explored(Counted(PAGE), ask=made_of(a="1", b="1", c="1"))
    second, then = explored(Counted(PAGE), kept, made_of(a="1", b="2", d="1"))
    third, _ = explored(Counted(PAGE), then, made_of(a="1", b="2", d="1"))

    assert (first.not_kept, first.kept) == ("", 0)
    assert (second.not_kept, second.kept) == ("changed: b, c, d", 0)
    assert (third.not_kept, third.kept > 0) == ("", True)


def test_where_much_has_changed_a_part_of_it_is_named() -> None:
    def made_of(value: str) -> Callable[[], Basis]:
        parts = {f"file {number:02}": value for number in range(20)}
        return lambda: Basis(value, frozenset({CALLER}), parts=parts)

    _, kept = explored(Counted(PAGE), ask=made_of("1"))
    second, _ = explored(Counted(PAGE), kept, made_of("2"))

    named = ", ".join(f"file {number:02}" for number in range(CHANGES))
    assert second.not_kept == f"changed: {named} and {20 - CHANGES} more"


def test_runs_that_were_kept_before_parts_were_are_told_as_well() -> None:
    _, kept = explored(Counted(PAGE))
    del kept["parts"]

    again, _ = explored(Counted(PAGE), kept)
    other, _ = explored(Counted(PAGE), kept, basis("other code"))

    assert (again.kept > 0, again.not_kept) == (True, "")
    assert (other.kept, other.not_kept) == (0, "changed: what it rests on")


def test_other_calls_are_named_as_what_has_changed() -> None:
    more = replace(OPTIONAL, steps=(*OPTIONAL.steps, Step("optional", (Call("p9"),))))
    _, kept = explored(Counted(OPTIONAL))

    second, _ = explored(Counted(more), kept)

    assert (second.kept, second.not_kept) == (0, "changed: what runs without faults call")


def test_when_the_time_is_over_nothing_is_taken_from_before_either() -> None:
    pairs = [[Call(f"app>http:GET:{each}{n}/") for each in "ab"] for n in range(3)]
    program = Call("root", tuple(Step("fallback", tuple(pair)) for pair in pairs))
    declared = basis("code", "app", *(f"{each}{n}" for each in "ab" for n in range(3)))
    _, kept = explored(Counted(program), ask=declared)
    asked = iter((False, True))
    before = SurvivedRuns(declared, kept)

    second = explore("t", Counted(program), Bounds(), lambda: next(asked), survived=before)

    assert [record.kept for record in second.records] == [False, True]


def test_a_database_is_declared_under_the_name_that_it_was_started_by() -> None:
    """Spans know where it listens, and not what it is called."""
    query = "app>db:SELECT:shop/copies"
    asking = simulated(Call("root", (Step("critical", (Call(query),)),)), frozenset()).lineage
    lineage = replace(asking, callees={query: "127.0.0.1:5432"})
    declared = Basis("code", frozenset({"app", "stockdb"}))

    named = replace(declared, names={"127.0.0.1:5432": "stockdb"})

    assert named.undeclared(lineage, {}) == []
    assert declared.undeclared(lineage, {}) == ["127.0.0.1:5432 (not declared)"]


def _broken(kept: Any, **parts: object) -> Any:
    return kept | parts


@pytest.mark.parametrize(
    "parts",
    [
        {"format": "ldfi-lessons/0"},
        {"runs": [{"faults": ["error@p1"]}]},
        {"runs": [7]},
        {"runs": 7},
        {"runs": [{"faults": ["error@p1"], "trace": "a", "spans": [["b"]], "degraded": False}]},
    ],
)
def test_what_cannot_be_read_is_nothing(parts: dict[str, object]) -> None:
    first, kept = explored(Counted(PAGE))

    for earlier in (_broken(kept, **parts), [kept], "nonsense", 3, None):
        second, then = explored(Counted(PAGE), earlier)
        assert (second.kept, second.runs) == (0, first.runs)
        assert then["runs"]


def _places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something stands in a document."""
    if not isinstance(value, dict | list):
        return []
    here = [(*above, key) for key in (value if isinstance(value, dict) else range(len(value)))]
    return here + [place for each in here for place in _places(value[each[-1]], each)]


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, float("inf"), float("nan"), "", "\ud800", [], [[]], {}]
)


@given(st.data())
def test_whatever_stands_in_what_was_kept_is_read_or_left(data: st.DataObject) -> None:
    kept = json.loads(json.dumps(explored(Counted(OPTIONAL))[1]))
    *above, last = data.draw(st.sampled_from(_places(kept)))
    inner = kept
    for key in above:
        inner = inner[key]
    inner[last] = data.draw(ODD)

    explored(Counted(OPTIONAL), kept)


@pytest.mark.parametrize("seed", range(3))
def test_kept_runs_are_marked_in_the_evidence_which_holds(seed: int) -> None:
    few = replace(OPTIONAL, steps=OPTIONAL.steps[:2])  # so few that each set is tried by itself
    _, kept = explored(Counted(few), seed=seed)
    second, _ = explored(Counted(few), kept, seed=seed)
    assert second.kept

    entry = class_evidence("t", second.certificate or {}, second.records)
    document = {"format": FORMAT, "head": None, "grown": [], "classes": [entry]}
    read = EvidenceFile.from_json(json.loads(json.dumps(document)))
    found = verify(read, Against((), 0.0))

    assert found.false == []
    said = f"t (version 1): {second.kept} runs are kept from an earlier exploration"
    assert said in found.lacking
    marked = [run["record"].get("kept") for run in entry["runs"]]
    assert marked.count(True) == second.kept
    assert set(marked) <= {True, None}


def test_kept_runs_are_no_reason_to_run_more() -> None:
    sizes = itertools.product(range(1, 4), range(2))
    for size, seed in sizes:
        first, kept = explored(Counted(PAGE), max_size=size, seed=seed)
        second, _ = explored(Counted(PAGE), kept, max_size=size, seed=seed)
        assert second.runs <= first.runs
