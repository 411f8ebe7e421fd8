"""A short form of :mod:`benchmarks.years`: some months of a few experiments a day."""

from __future__ import annotations

from pathlib import Path

from benchmarks.years import measure


def test_some_months_are_filled_pruned_and_started_from(tmp_path: Path) -> None:
    rows, targets = measure(f"sqlite:///{tmp_path / 'years.sqlite3'}", days=120, a_day=2, of=1)

    assert targets["experiments"]["value"] == 241  # and the one that is asked for at the end
    timed = {"start (s)", "slowest query (ms)"}
    assert all(each["met"] for name, each in targets.items() if name not in timed)
    shown = {row["what"]: row["value"] for row in rows}
    assert shown["lessons dropped"] > 40
    assert targets["lessons known after the start"]["value"] < 60
