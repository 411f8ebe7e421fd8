"""What a benchmark has done already is not done again, and the figures are the same."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from benchmarks.pieces import carried_out


def carry_out(piece: tuple[Path, int]) -> int:
    log, number = piece
    with log.open("a") as file:
        file.write(f"{number}\n")
    return number * number


def test_what_was_interrupted_goes_on_where_it_was(tmp_path: Path) -> None:
    # Given pieces of which some were done before somebody stopped it
    log, kept = tmp_path / "log", tmp_path / "kept"
    pieces = [(log, number) for number in range(12)]
    done_before = list(islice(carried_out(carry_out, pieces[:5], kept=kept), 4))
    first = log.read_text().split()
    # When it is started anew
    results = list(carried_out(carry_out, pieces, kept=kept))
    # Then the results are those of one go, and what was done is not done again
    assert results == [number * number for number in range(12)]
    assert done_before == results[:4]
    assert len(first) in {4, 5}  # the fifth may have been begun: then it is done and kept, too
    assert sorted(map(int, log.read_text().split())) == list(range(12))
    assert not list(kept.glob("*.new"))


def test_without_a_folder_nothing_is_kept(tmp_path: Path) -> None:
    pieces = [(tmp_path / "log", 3)]
    assert list(carried_out(carry_out, pieces)) == [9]
    assert list(carried_out(carry_out, pieces)) == [9]
    assert (tmp_path / "log").read_text() == "3\n3\n"
