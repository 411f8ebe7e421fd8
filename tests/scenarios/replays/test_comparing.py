"""Comparisons of what was measured: versions that differ, and such that do not."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.errors import InvalidReplay
from ldfi.scenarios.replays.comparing import EVERYTHING, ClassDifference, compared
from ldfi.scenarios.replays.latency_test import BEYOND, SideBySide, surplus
from ldfi.scenarios.replays.lineages import ClassLineage, changes
from ldfi.scenarios.replays.measurement import Measurement, TargetRun, read_measurement
from ldfi.scenarios.replays.outcome import comparison_of, verdict_of
from ldfi.scenarios.replays.series import UNANSWERED, Series, together

Seconds = Callable[[random.Random, float], float]


def plain(rng: random.Random, _due: float) -> float:
    return 0.02 * rng.lognormvariate(0.0, 0.4)


def series(
    name: str, seed: int | str, seconds: Seconds = plain, failing: float = 0.0, n: int = 20_000
) -> Series:
    rng, made = random.Random(seed), Series(name)
    for k in range(n):
        due = 60.0 * k / n
        made.take(due, seconds(rng, due), "status-500" if rng.random() < failing else None)
    return made


def cells(classes: tuple[ClassDifference, ...]) -> dict[str, str]:
    (only,) = classes
    return {each.metric: each.verdict for each in only.metrics}


def against(seconds: Seconds, failing: float = 0.0, n: int = 20_000) -> tuple[ClassDifference, ...]:
    old, new = series("GET /", 1, n=n), series("GET /", 2, seconds, failing, n)
    return compared({"GET /": old}, {"GET /": new}, in_turns=True)


def test_one_version_against_itself_is_the_same() -> None:
    classes = against(plain)
    assert verdict_of(classes) == "same"


def test_a_version_that_takes_longer_is_worse_and_one_that_takes_less_is_not() -> None:
    assert verdict_of(against(lambda rng, due: 1.2 * plain(rng, due))) == "worse"
    faster = against(lambda rng, due: 0.8 * plain(rng, due))
    assert cells(faster)["p50"] == "better"
    assert verdict_of(faster) == "same"


def test_a_version_that_fails_more_is_worse_however_fast_it_fails() -> None:
    classes = against(plain, failing=0.02)
    assert cells(classes)["success"] == "worse"
    assert verdict_of(classes) == "worse"


def test_answers_that_never_come_are_the_slowest_of_all() -> None:
    classes = against(lambda rng, due: UNANSWERED if rng.random() < 0.03 else plain(rng, due))
    assert cells(classes)["p99"] == "worse"


def test_one_long_pause_is_no_proof() -> None:
    def pausing(rng: random.Random, due: float) -> float:
        return plain(rng, due) + (21.5 - due if 20 < due < 21.5 else 0.0)

    classes = against(pausing)
    by_name = {each.metric: each for each in classes[0].metrics}
    assert not by_name["p99"].claimed  # 500 requests in a row, and still a single event
    assert verdict_of(classes) == "cannot tell"


def test_a_heavier_tail_is_told_in_any_weather() -> None:
    def storm(usual: float, heavier: float) -> Seconds:
        def seconds(rng: random.Random, due: float) -> float:
            normal = rng.gauss(0.0, 1.0)
            noise = 0.6 * math.sin(due) + 0.3 * math.sin(due / 3.0)
            tail = math.pow(heavier, max(0.0, normal / 2.33))
            return usual * math.exp(0.5 * normal + noise) * tail

        return seconds

    told = 0
    for seed in range(8):
        old, new = (
            {
                name: series(name, f"{seed}{name}{heavier}", storm(usual, heavier), n=6_000)
                for name, usual in (("GET /", 0.01), ("GET /search", 0.04), ("POST /", 0.1))
            }
            for heavier in (1.0, 1.09)
        )
        told += verdict_of(compared(old, new, in_turns=True)) == "worse"
    assert told >= 6  # 2 of the quantiles of the whole run alone


@given(
    st.lists(st.tuples(st.floats(0, 9), st.booleans(), st.integers(0, 5)), min_size=1, max_size=60),
    st.sampled_from([0.5, 0.9]),
)
def test_the_surplus_is_what_counting_each_turn_by_hand_comes_to(
    rows: list[tuple[float, bool, int]], share: float
) -> None:
    old, new = Series("x"), Series("x")
    for due, is_new, seconds in rows:
        (new if is_new else old).take(due, float(seconds), None)
    if not (old.due and new.due):
        return
    begin, end = min(old.due + new.due), max(old.due + new.due)
    turns = max(1, int(len(rows) * (1 - share) / BEYOND))
    total = varies = 0.0
    for turn in range(turns):
        here = [
            (float(seconds), is_new)
            for due, is_new, seconds in rows
            if min(turns - 1, int(turns * ((due - begin) / (end - begin) if end > begin else 0)))
            == turn
        ]
        marked = round(len(here) * (1 - share))
        limit = sorted((s for s, _ in here), reverse=True)[marked] if marked < len(here) else -1
        beyond = [is_new for s, is_new in here if s > limit] if marked else []
        fresh, size = sum(is_new for _, is_new in here), len(here)
        if beyond and 0 < fresh < size:
            part = len(beyond) / size
            total += sum(beyond) - fresh * part
            varies += fresh * (size - fresh) * part * (1 - part) / (size - 1)
    found = surplus(SideBySide.of(old, new, 7), share)
    assert found.total == pytest.approx(total, abs=1e-9)
    assert found.varies == pytest.approx(varies, abs=1e-9)


def test_of_few_requests_nothing_is_said() -> None:
    assert set(cells(against(plain, n=15)).values()) == {"cannot tell"}
    assert verdict_of(()) == "cannot tell"


def test_classes_are_united_only_where_they_are_mixed_alike() -> None:
    sides = [{n: series(n, seed) for n in ("a", "b")} for seed in (1, 2)]
    assert [each.name for each in compared(*sides, in_turns=True)] == [EVERYTHING, "a", "b"]
    other = {"a": sides[1]["a"], "b": series("b", 3, n=1000)}
    assert [each.name for each in compared(sides[0], other, in_turns=False)] == ["a", "b"]


ROWS = st.lists(st.tuples(st.floats(0, 9), st.floats(0, 9), st.sampled_from([None, "timeout"])))


@given(ROWS, ROWS)
def test_together_are_all_of_them_with_their_failures(
    one: list[tuple[float, float, str | None]], two: list[tuple[float, float, str | None]]
) -> None:
    parts = []
    for rows in (one, two):
        parts.append(Series("x"))
        for row in rows:
            parts[-1].take(*row)
    united = together("both", parts)
    found = zip(
        united.due, united.seconds, map(united.failed.get, range(len(united.due))), strict=True
    )
    assert sorted(map(repr, found)) == sorted(map(repr, [*one, *two]))
    assert united.due == sorted(united.due)


def measurement(*targets: TargetRun) -> Measurement:
    return Measurement("r.jsonl", "constant", 60.0, 50.0, 1_000.0, 0.0, list(targets))


def run(name: str, seed: int | str, seconds: Seconds = plain) -> TargetRun:
    made = series("GET /", seed, seconds)
    return TargetRun(name, f"http://{name}", 50.0, {"GET /": made}, ["GET /: status 500"])


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    target = run("old", 1, lambda rng, due: UNANSWERED if rng.random() < 0.1 else plain(rng, due))
    target.series["GET /"].failed[3] = "timeout"
    target.lineages["GET /"] = ClassLineage(2, {"a>b": [0.1, 0.2]})
    file = tmp_path / "run.jsonl"
    file.write_text(measurement(target).to_lines())
    back = read_measurement(file)
    assert back.to_lines() == file.read_text()
    assert back.targets[0].series["GET /"].failed == target.series["GET /"].failed
    assert math.isinf(max(back.targets[0].series["GET /"].seconds))


@pytest.mark.parametrize("text", ["", "{}", "[", '{"ldfi": "replay", "version": 2}'])
def test_another_file_is_no_run(tmp_path: Path, text: str) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text(text)
    with pytest.raises(InvalidReplay):
        read_measurement(file)


def test_two_runs_are_compared_and_what_differs_in_asking_is_doubted() -> None:
    two = comparison_of([measurement(run("a", 1)), measurement(run("b", 2))])
    assert (two.verdict, two.in_turns) == ("same", False)
    other = measurement(run("b", 2))
    other.asked = 80.0
    assert comparison_of([measurement(run("a", 1)), other]).verdict == "cannot tell"
    with pytest.raises(InvalidReplay):
        comparison_of([measurement(run("a", 1))])


def test_a_rate_that_was_not_reached_cannot_pass_for_the_same() -> None:
    slow = run("b", 2)
    slow.reached = 20.0
    found = comparison_of([measurement(run("a", 1), slow)])
    assert found.verdict == "cannot tell"
    assert "asked 50/s, reached 20/s" in found.doubts[0]


def test_calls_that_are_new_gone_and_slower_are_told() -> None:
    old = ClassLineage(20, {"kept": [0.01] * 20, "gone": [0.01] * 20, "slow": [0.01] * 20})
    new = ClassLineage(20, {"kept": [0.011] * 20, "new": [0.01] * 20, "slow": [0.02] * 20})
    found = {each.point: each.kind for each in changes({"c": old}, {"c": new})}
    assert found == {"gone": "gone", "new": "new", "slow": "slower"}
    assert not changes({"c": ClassLineage(3, {"gone": [0.1]})}, {"c": new})
