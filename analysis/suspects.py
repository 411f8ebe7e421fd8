"""Which calls the failed requests of one class point at, and what failed beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ldfi.lineage.blame import FailureRecord, blame
from ldfi.lineage.classes import CONSISTENT, RequestClass
from ldfi.lineage.evidence import doubted, in_order
from ldfi.lineage.lineage import Lineage
from ldfi.lineage.shapes import Shape


def suspected(each: RequestClass) -> Iterator[tuple[Shape, tuple[str, ...]]]:
    """List the failed shapes of a class, each with the points that its trace points at, first the
    one that failed first."""
    bad = [shape for shape in each.shapes if shape.outcome == "failed"]
    good = [shape for shape in each.shapes if shape.outcome == "good"]
    if not bad:
        return
    harm, usual, record = _harm(bad, good), _usual(good), _record(bad, good)
    for shape in bad:
        tree = shape.lineage.tree
        found = blame(tree, usual, record)
        if not found:  # the error did not travel up: take what fails when users are hurt
            worst = _most_harmful(shape.lineage.failed, harm)
            named = tuple(point for point in in_order(tree) if point in worst)
            found = named or tuple(sorted(doubted(tree)))
        yield shape, found


def _usual(good: Iterable[Shape]) -> frozenset[str]:
    """List the points that good requests call although nothing else failed in them."""
    usual: set[str] = set()
    for shape in good:
        lost = {fault.partition("@")[2] for fault in shape.lineage.lost}
        usual |= shape.lineage.called if not lost else lost if len(lost) == 1 else set()
    return frozenset(usual)


def _record(bad: Sequence[Shape], good: Sequence[Shape]) -> FailureRecord:
    survived, fatal = Counter[str](), Counter[str]()
    for shape in good:
        survived.update(dict.fromkeys(shape.lineage.lost, shape.count))
    for shape in bad:
        alone = broken(shape.lineage)
        if len(alone) == 1:
            fatal.update(dict.fromkeys(alone, shape.count))
    always = _always([shape for shape in good if shape.teaches])
    return FailureRecord(survived, fatal, always, sum(shape.count for shape in good))


def _always(undisturbed: Sequence[Shape]) -> tuple[str, ...]:
    """List the points that nearly all of these requests call, in the order in which they do."""
    requests, places = Counter[str](), Counter[str]()
    for shape in undisturbed:
        for place, point in enumerate(in_order(shape.lineage.tree)):
            requests[point] += shape.count
            places[point] += place * shape.count
    enough = CONSISTENT * sum(shape.count for shape in undisturbed)
    always = [point for point, count in requests.items() if count >= enough]
    return tuple(sorted(always, key=lambda point: (places[point] / requests[point], point)))


def broken(run: Lineage) -> frozenset[str]:
    """Return the points at the bottom of each chain of failed calls, without those of which
    another call succeeded."""
    return frozenset(fault.partition("@")[2] for fault in run.ends) - run.support


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
