"""From the shapes of one request class to what they prove, and what they leave open."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ldfi.analysis.report import ClassReport, Failure, GraphEdge, Support, Tolerated
from ldfi.analysis.suspects import suspected
from ldfi.fit.protocol.native_kinds import GONE
from ldfi.fit.protocol.points import Point
from ldfi.lineage.classes import RequestClass
from ldfi.lineage.clauses import GoodRuns
from ldfi.lineage.graph import lineage_graph
from ldfi.lineage.shapes import Shape
from ldfi.solver.explorer import Explorer

MOST_HYPOTHESES = 1000
"""Hypotheses listed for one class; a class with more of them needs a smaller size."""


def report_on(each: RequestClass, max_size: int) -> ClassReport:
    """Report everything that can be said about one class."""
    good = [shape for shape in each.shapes if shape.outcome == "good"]
    counts = Counter[str]()
    for shape in each.shapes:
        counts[shape.outcome] += shape.count
    hypotheses = _hypotheses(good, max_size)
    return ClassReport(
        name=each.name,
        service=each.service,
        predicate=each.predicate.to_json(),
        traces=each.traces,
        good=counts["good"],
        failed=counts["failed"],
        refused=counts["refused"],
        consistency=round(each.consistency, 4),
        hit_rate=round(each.hit_rate, 4),
        unfit=each.unfit,
        supports=_supports(good),
        hypotheses=hypotheses[:MOST_HYPOTHESES],
        more_hypotheses=len(hypotheses) > MOST_HYPOTHESES,
        tolerated=_tolerated(good),
        failures=_failures(each),
        retried=tuple(sorted({p for s in good for p in s.lineage.failed & s.lineage.support})),
        callees=_callees(each.shapes),
        edges=_edges(each.shapes),
    )


def _hypotheses(good: Iterable[Shape], max_size: int) -> tuple[tuple[str, ...], ...]:
    """List sets of errors that hit every clause. Delays are left out: traces do not try them.

    An error is a dependency that is gone, however nature shows that.
    """
    good_runs = GoodRuns()
    for shape in good:
        good_runs.add(shape.lineage, shape.count)
    clauses = good_runs.clauses()
    if not clauses:
        return ()
    explorer = Explorer(max_size=max_size, time_limit=None)
    for clause in clauses:
        survived = frozenset(map(_as_error, clause.survived))
        errors = {fault for fault in clause.faults if fault.startswith("error@")} - survived
        failed = survived | clause.outlasted
        explorer.observe(errors, failed=failed, traces=[clause.trace_id])
    found = explorer.open_hypotheses(MOST_HYPOTHESES + 1)
    ordered = sorted((tuple(sorted(map(str, each))) for each in found), key=lambda h: (len(h), h))
    return tuple(each for each in ordered if each)


def _supports(good: Iterable[Shape]) -> tuple[Support, ...]:
    groups: dict[tuple[frozenset[str], frozenset[str]], list[Shape]] = defaultdict(list)
    for shape in good:
        run = shape.lineage
        groups[run.support, run.failed - run.support].append(shape)
    found = [
        Support(
            points=tuple(sorted(support)),
            requests=sum(shape.count for shape in shapes),
            failed=tuple(sorted(lost)),
            traces=_exemplars(shapes),
        )
        for (support, lost), shapes in groups.items()
    ]
    return tuple(sorted(found, key=lambda s: (-s.requests, s.points, s.failed)))


def _tolerated(good: list[Shape]) -> tuple[Tolerated, ...]:
    usual = {p for s in good if s.unperturbed for p in s.lineage.called}
    groups: dict[tuple[tuple[str, ...], str], list[Shape]] = defaultdict(list)
    for shape in good:
        faults, origin = survived_in(shape)
        if faults:
            groups[faults, origin].append(shape)
    found = []
    for (faults, origin), shapes in groups.items():
        called = {point for shape in shapes for point in shape.lineage.called}
        lost = {fault.partition("@")[2] for fault in faults}
        found.append(
            Tolerated(
                faults=faults,
                requests=sum(shape.count for shape in shapes),
                origin=origin,
                instead=tuple(sorted(called - usual - lost)) if usual else (),
                traces=_exemplars(shapes),
            )
        )
    return tuple(sorted(found, key=lambda t: (-t.requests, t.faults)))


def survived_in(shape: Shape) -> tuple[tuple[str, ...], str]:
    """Name the faults that good requests of one shape got by without, and how that is known."""
    run = shape.lineage
    lost = frozenset(map(_as_error, run.lost))
    if run.fired:
        natural = {f for f in lost if f"delay@{f.partition('@')[2]}" not in run.fired}
        return tuple(sorted(run.fired | natural)), "injected"
    if lost:
        return tuple(sorted(lost)), "observed"
    return tuple(sorted(shape.told)), "told"


def _as_error(fault: str) -> str:
    """Call a refused connection, and what a proxy answers for one, an error."""
    kind, _, point = fault.partition("@")
    return f"error@{point}" if kind in GONE else fault


def _failures(each: RequestClass) -> tuple[Failure, ...]:
    groups: dict[tuple[tuple[str, ...], bool, tuple[str, ...]], list[Shape]] = defaultdict(list)
    for shape, suspects in suspected(each):
        told = tuple(sorted(shape.told))
        groups[suspects, shape.hidden, told].append(shape)
    found = [
        Failure(
            suspects=suspects,
            requests=sum(shape.count for shape in shapes),
            hidden=hidden,
            told=told,
            traces=_exemplars(shapes),
        )
        for (suspects, hidden, told), shapes in groups.items()
    ]
    return tuple(sorted(found, key=lambda f: (-f.requests, f.suspects, f.told)))


def _callees(shapes: Iterable[Shape]) -> dict[str, str]:
    book, points = AddressBook(), set[str]()
    known: dict[str, str] = {}
    for shape in shapes:
        book.learn(shape.lineage.callees, shape.count)
        known |= shape.lineage.callees
        points |= shape.lineage.called
    return {p: callee for p in sorted(points) if (callee := known.get(p) or book.callee(p))}


def _edges(shapes: Iterable[Shape]) -> tuple[GraphEdge, ...]:
    graph = lineage_graph((shape.lineage.tree, shape.count) for shape in shapes)
    return tuple(
        GraphEdge(above, point, data["calls"], data["failures"])
        for above, point, data in sorted(graph.edges(data=True), key=lambda edge: edge[:2])
    )


def _exemplars(shapes: Iterable[Shape]) -> tuple[str, ...]:
    traces = sorted(trace for shape in shapes for trace in shape.traces)
    return tuple(trace_id for _, trace_id in traces[:5])


# Who answers at an address, learned from the calls that were answered.
#
# Some spans have no other half: the callee was down, or never exported it. All that is known then
# is the address the caller used. Where other calls to the same address were answered, the service
# that answered them is the callee of these as well.
@dataclass(slots=True)
class AddressBook:
    """Peer (host, or address and port) → the services that answered there, with counts."""

    _answers: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def learn(self, callees: Mapping[str, str], count: int = 1) -> None:
        """Take the callees of one lineage (or of ``count`` alike)."""
        for point, callee in callees.items():
            peer = Point.parse(point).peer
            if peer:
                self._answers[peer][callee] += count

    def callee(self, point: str) -> str:
        """Name the service behind a point's address; empty where nobody ever answered there."""
        answers = self._answers.get(Point.parse(point).peer)
        return max(answers, key=lambda name: (answers[name], name)) if answers else ""
