"""Vital signs, held against what befalls a simulated program's nodes."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.traffic.vital_signs import LOOKED_AT, RECENT, Signs, Vitals
from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.span import Span, Trace
from ldfi.testing.spans import span

MS = 1_000_000


class Town:
    """A service that calls points, one after the other, some of them inside others."""

    def __init__(self, **inside: str) -> None:
        self.vitals = Vitals()
        self.now = 1000.0
        self.inside = inside
        self.number = 0

    def request(
        self,
        calls: str,
        failing: str = "",
        took: dict[str, float] | None = None,
        arm: str = "",
    ) -> Lineage:
        """One request: ``took``: milliseconds by point, ten by default."""
        self.number += 1
        trace, clock = f"{self.number:032x}", self.number * 10**10
        at = (clock, clock + 900 * MS)
        spans: list[Span] = [span("root", kind="server", trace=trace, at=at)]
        if arm:
            marks = {"experiment": "e1", "arm": arm}
            spans = [span("root", None, "server", "api", False, at, trace, **marks)]
        for name in calls.split():
            end = clock + int((took or {}).get(name, 10.0) * MS)
            above = self.inside.get(name, "root")
            failed = name in failing.split()
            spans.append(span(name, above, trace=trace, failed=failed, at=(clock, end)))
        lineage = learn(Trace.of(trace, spans))
        assert lineage is not None
        return lineage

    def go_on(
        self,
        seconds: float,
        calls: str,
        failing: str = "",
        took: dict[str, float] | None = None,
        arm: str = "",
        rate: int = 10,
    ) -> Signs:
        """So many seconds of requests, ``rate`` a second; what the signs are then."""
        for _ in range(int(seconds * rate)):
            self.now += 1 / rate
            self.vitals.observe(self.request(calls, failing, took, arm), self.now)
        return self.vitals.signs(self.now)


def test_what_fails_now_is_told_with_its_evidence() -> None:
    town = Town()
    assert town.go_on(30, "a b") == Signs(answered=frozenset({"a", "b"}))

    signs = town.go_on(3, "a b", failing="b")

    (sign,) = signs.failing
    assert (sign.name, sign.state, sign.points) == ("b", "failing", ("b",))
    assert (sign.calls, sign.ailing, sign.latest) == (50, 29, town.now)
    assert sign.trace_id == f"{town.number:032x}"
    assert "b fails now: 29 of the newest 50 calls" in sign.words


def test_three_calls_in_a_row_are_enough_and_the_one_call_there_was() -> None:
    town = Town()
    town.go_on(30, "a b")
    assert not town.go_on(0.2, "a b", failing="b").failing
    assert town.go_on(0.1, "a b", failing="b").failing

    assert Town().go_on(0.1, "a b", failing="b").failing[0].calls == 1


def test_two_connections_in_a_row_that_were_refused_are_enough() -> None:
    town = Town()
    town.go_on(30, "a b")
    for number, refused in enumerate((True, False, True, True)):
        marks = {"error_type": "ConnectionRefusedError"} if refused else {}
        spans = [
            span("root", kind="server", trace=f"{number:032x}", at=(0, 9)),
            span("b", "root", trace=f"{number:032x}", failed=refused, at=(1, 2), **marks),
        ]
        town.now += 0.1
        lineage = learn(Trace.of(f"{number:032x}", spans))
        assert lineage is not None
        town.vitals.observe(lineage, town.now)
        assert bool(town.vitals.signs(town.now).failing) == (number == 3)


def test_what_is_back_is_down_no_more_when_most_of_its_newest_calls_succeed() -> None:
    town = Town()
    town.go_on(30, "a b", failing="b")
    assert town.go_on(1.5, "a b").failing
    assert not town.go_on(1, "a b").failing  # twenty in a row
    town.go_on(30, "a b", failing="b")
    for _ in range(3):
        town.go_on(1.2, "a b")
        assert town.go_on(0.1, "a b", failing="b").failing
    assert not town.go_on(3, "a b").failing


def test_a_failure_is_held_against_whom_it_began_with() -> None:
    town = Town(b="a")
    assert [each.name for each in town.go_on(5, "a b", failing="a b").failing] == ["b"]
    assert [each.name for each in Town(b="a").go_on(5, "a b", failing="a").failing] == ["a"]


def test_of_a_system_only_the_points_that_fail_unless_all_do() -> None:
    town = Town()
    reads, writes = "api>http:GET:store/x", "api>http:POST:store/x"
    town.go_on(10, f"{reads} {writes}")
    assert [s.name for s in town.go_on(5, f"{reads} {writes}", failing=writes).failing] == [writes]
    (sign,) = town.go_on(5, f"{reads} {writes}", failing=f"{reads} {writes}").failing
    assert (sign.name, sign.points) == ("store", (reads, writes))


def test_a_retry_that_succeeds_now_and_then_needed_is_no_failure() -> None:
    town = Town()
    for number in range(300):
        town.now += 0.1
        lineage = town.request("a")
        town.vitals.observe(lineage, town.now)
        if number % 9 == 0:
            town.vitals.observe(town.request("a", failing="a"), town.now)
    assert not town.vitals.signs(town.now).failing


def test_whoever_answers_late_is_doubted_and_whoever_waits_for_it_is_not() -> None:
    town = Town(b="a")
    rng = random.Random(1)
    for _ in range(90):
        town.go_on(1, "a b c", took={p: 10 * rng.lognormvariate(0, 0.2) for p in "abc"})
    assert not town.vitals.signs(town.now).late

    signs = town.go_on(5, "a b c", took={"a": 60.0, "b": 55.0})

    (sign,) = signs.late
    assert (sign.name, sign.points) == ("b", ("b",))
    assert sign.seconds == pytest.approx(0.055)
    assert sign.usual == pytest.approx(0.010, rel=0.1)
    assert "b answers late now: 55 ms instead of" in sign.words


def test_a_few_slow_calls_are_nothing_and_a_third_of_them_slow_by_habit_is_not_either() -> None:
    town = Town()
    rng = random.Random(2)

    def took() -> dict[str, float]:
        return {"a": rng.choice((5.0, 5.0, 50.0)), "b": 500.0 if rng.random() < 0.03 else 5.0}

    for _ in range(2000):
        town.now += 0.1
        town.vitals.observe(town.request("a b", took=took()), town.now)
        if town.number % 20 == 0:
            assert not town.vitals.signs(town.now).late


def test_nothing_is_known_of_what_nobody_has_called_for_a_minute() -> None:
    town = Town()
    town.go_on(10, "a b")
    signs = town.go_on(RECENT + 1, "a")
    assert signs.answered == {"a"}


def test_what_somebody_injects_says_only_who_is_there() -> None:
    town = Town()
    signs = town.go_on(5, "a b", failing="a", arm="treatment")
    assert signs == Signs(answered=frozenset({"b"}))
    assert town.go_on(5, "a b", failing="a", arm="control").failing


def test_of_a_kind_only_some_requests_are_looked_at_in_a_second() -> None:
    signs = Town().go_on(3, "a", rate=1000, failing="a")
    assert signs.failing[0].calls <= LOOKED_AT * 4


@given(st.lists(st.tuples(st.floats(0, 20), st.booleans()), min_size=1, max_size=80))
def test_the_newest_calls_speak_as_counted_by_hand(calls: list[tuple[float, bool]]) -> None:
    town, log = Town(), list[tuple[float, bool]]()
    for wait, failed in calls:
        town.now += 0.2 + wait
        town.vitals.observe(town.request("a", failing="a" if failed else ""), town.now)
        log.append((town.now, failed))

    signs = town.vitals.signs(town.now)

    newest = list(_newest(log, town.now))
    failures = newest.count(True)
    back = len(newest) >= 20 and not any(newest[-20:])
    wanted = all(newest[-3:]) or (not back and failures >= 3 and failures >= 0.2 * len(newest))
    assert bool(signs.failing) == wanted
    assert bool(signs.answered) == any(not failed for at, failed in log if at >= town.now - RECENT)


def _newest(log: list[tuple[float, bool]], now: float) -> Iterator[bool]:
    recent = [(at, failed) for at, failed in log if at >= now - 60]
    fresh = len([at for at, _ in recent if at >= now - 5])
    yield from (failed for _, failed in recent[-max(20, fresh) :])


def test_a_copy_tells_how_it_was_whatever_comes_later() -> None:
    town = Town(b="a")
    slow = {"b": 200.0}
    town.go_on(400, "a b", rate=1)
    before, copied = town.go_on(5, "a b c", failing="c", took=slow), town.vitals.copy()
    assert before.failing and before.late

    assert copied.signs(town.now, [town.request("a d", failing="d")]) != before
    assert copied.signs(town.now) == town.vitals.signs(town.now) == before
    then = town.now
    assert town.go_on(30, "a b c e") != before
    assert copied.signs(then) == before
