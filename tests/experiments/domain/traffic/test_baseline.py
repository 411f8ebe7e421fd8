"""The worst spell of a class, against brute force."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.traffic.baseline import (
    AGAIN,
    LENGTH,
    OLDEST,
    PIECE_OUTCOMES,
    Baseline,
    Spell,
)

PIECES = st.lists(st.tuples(st.integers(PIECE_OUTCOMES, 300), st.floats(0, 1)), max_size=30)


def lived(pieces: list[tuple[int, int]], apart: float = 1.0) -> Baseline:
    """Pieces of so many outcomes, of which so many failed, all at one time each."""
    baseline, devices = Baseline(), 0
    for number, (total, failed) in enumerate(pieces):
        for outcome in range(total):
            devices += 1
            baseline.add(f"d{devices}", number * apart, success=outcome >= failed)
    return baseline


@given(PIECES)
def test_it_is_the_worst_of_all_shortest_runs_of_so_many(drawn: list[tuple[int, float]]) -> None:
    pieces = [(total, int(total * share)) for total, share in drawn]
    runs = []
    for last in range(len(pieces)):
        run = Spell(0, 0)
        for total, failed in reversed(pieces[: last + 1]):
            run = Spell(run.failed + failed, run.total + total)
            if run.total >= LENGTH:
                runs.append(run)
                break
    failed, total = sum(f for _, f in pieces), sum(t for t, _ in pieces)
    worst = lived(pieces).worst(30.0)
    if runs:
        assert worst in runs
        assert all(worst.failed * each.total >= each.failed * worst.total for each in runs)
    else:
        assert worst == Spell(failed, total)


def test_what_is_old_is_forgotten() -> None:
    baseline = lived([(LENGTH, 50), (LENGTH, 1)])
    assert baseline.worst(OLDEST) == Spell(50, LENGTH)
    assert baseline.worst(OLDEST + 0.5) == Spell(1, LENGTH)
    assert baseline.worst(OLDEST + 1.5) == Spell(0, 0)


def test_a_device_that_tries_again_and_again_fails_once_a_minute() -> None:
    baseline = Baseline()
    for second in range(int(AGAIN) + 1):
        baseline.add("again", float(second), success=False)
    assert baseline.worst(AGAIN) == Spell(2, 2)
