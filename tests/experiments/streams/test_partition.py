from __future__ import annotations

from ldfi.experiments.streams.partition import LogTime


def test_time_passes_by_what_is_read_however_fast_that_is() -> None:
    time = LogTime(step=1.0)
    for number in range(101):
        time.read(written=1000 + number / 10, ours=5.0)
    assert round(time.now, 6) == 10.0


def test_a_gap_counts_one_step_for_nobody_may_have_been_able_to_write() -> None:
    time = LogTime(step=1.0)
    time.read(written=1000.0, ours=5.0)
    time.read(written=1060.0, ours=65.0)
    assert time.now == 1.0


def test_where_everything_is_read_our_clock_counts() -> None:
    time = LogTime(step=1.0)
    time.read(written=1000.0, ours=5.0)
    for number in range(1, 11):
        time.idle(ours=5.0 + number / 4)
    assert time.now == 2.5
    # and what is read next, written after that silence, counts it no second time
    time.read(written=1002.6, ours=7.6)
    assert round(time.now, 6) == 2.6


def test_it_never_runs_backwards() -> None:
    time = LogTime(step=1.0)
    time.read(written=1000.0, ours=5.0)
    time.read(written=999.0, ours=6.0)
    time.idle(ours=4.0)
    assert time.now == 0.0
