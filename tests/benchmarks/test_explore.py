"""Explorations on all cores come to what one process comes to, each in its place."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.explore_campaign import Cell, explored


def test_each_cell_has_the_campaigns_of_its_seeds() -> None:
    small = (8, 10)
    cells = [Cell(name, name, 1, size=small) for name in ("exhaustive", "union", "smallest")]

    found = explored(cells, 3)

    for cell, campaigns in zip(cells, found, strict=True):
        expected = [cell.explore(seed) for seed in range(3)]
        assert [replace(each, seconds=0) for each in campaigns] == [
            replace(each, seconds=0) for each in expected
        ]
