"""Which calls the failed requests of one class point at, and what failed beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from ldfi.lineage.blame import blame
from ldfi.lineage.classes import RequestClass
from ldfi.lineage.evidence import doubted
from ldfi.lineage.lineage import Lineage
from ldfi.lineage.shapes import Shape


def suspected(each: RequestClass) -> Iterator[tuple[Shape, tuple[str, ...]]]:
    """List the failed shapes of a class, each with the points that its trace points at."""
    bad = [shape for shape in each.shapes if shape.outcome == "failed"]
    good = [shape for shape in each.shapes if shape.outcome == "good"]
    harm = _harm(bad, good)
    for shape in bad:
        found = blame(shape.lineage.tree, each.expected)
        if not found:  # the error did not travel up: take what fails when users are hurt
            found = _most_harmful(shape.lineage.failed, harm) or doubted(shape.lineage.tree)
        yield shape, tuple(sorted(found))


def broken(run: Lineage) -> frozenset[str]:
    """List the points at the bottom of each chain of failed calls, but for those of which another
    call succeeded."""
    found: set[str] = set()
    pending = list(run.tree.calls)
    while pending:
        call = pending.pop()
        if call.detached:
            continue
        failed = [inner for inner in call.calls if inner.failed and not inner.detached]
        if call.failed and not failed:
            found.add(call.point)
        pending.extend(failed if call.failed else call.calls)
    return frozenset(found - run.support)


def _most_harmful(failed: frozenset[str], harm: dict[str, float]) -> frozenset[str]:
    worst = max((harm[point] for point in failed), default=0.0)
    return frozenset(point for point in failed if harm[point] == worst > 0.5)


def _harm(bad: Iterable[Shape], good: Iterable[Shape]) -> dict[str, float]:
    """Measure for each point: of the requests in which it failed, the share that failed as a
    whole."""
    failed, total = Counter[str](), Counter[str]()
    for shapes, hurt in ((bad, True), (good, False)):
        for shape in shapes:
            for point in shape.lineage.failed:
                total[point] += shape.count
                failed[point] += shape.count if hurt else 0
    return {point: failed[point] / total[point] for point in total}
