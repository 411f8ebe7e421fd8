"""The dial between few experiments and few failed ones: the cap on the size of a union."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from benchmarks.explore_campaign import Campaign, Cell

CAPS = (1, 2, 4, 8, 10, 16, 32, 64, None)


@dataclass(frozen=True)
class Point:
    """Means over the seeds for one cap."""

    max_union: int | None
    blame: bool
    experiments: float
    failed: float
    faults_in_failed: float
    all_planted_found: bool


def cells(*, blame: bool) -> list[Cell]:
    """Return what is explored for one curve: the same trees under each cap."""
    return [Cell(f"cap {cap}", "union", 2, blame=blame, cap=cap) for cap in CAPS]


def point(cell: Cell, campaigns: Sequence[Campaign]) -> Point:
    """Take the means of what was explored under one cap."""
    return Point(
        max_union=cell.cap,
        blame=cell.blame,
        experiments=round(mean(c.experiments for c in campaigns), 2),
        failed=round(mean(c.failed for c in campaigns), 2),
        faults_in_failed=round(mean(c.harmed for c in campaigns), 1),
        all_planted_found=all(c.all_found for c in campaigns),
    )


def plot(curves: list[list[Point]], file: Path) -> None:
    """Draw the curves to a PNG."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for points in curves:
        label = "with blame" if points[0].blame else "without blame"
        xs = [point.failed for point in points]
        ys = [point.experiments for point in points]
        axes.plot(xs, ys, marker="o", label=label)
        for x, y, point in zip(xs, ys, points, strict=True):
            text = "∞" if point.max_union is None else str(point.max_union)
            axes.annotate(text, (x, y), textcoords="offset points", xytext=(5, 5), fontsize=8)
    axes.set_yscale("log")
    axes.set_xlabel("failed experiments (mean)")
    axes.set_ylabel("experiments to the certificate, size ≤ 2 (mean)")
    axes.set_title("The cap on the union: few experiments or few failures")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(file, dpi=120)
