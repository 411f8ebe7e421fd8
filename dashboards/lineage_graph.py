"""The lineage of a request class, and the difference between two runs, as graphs to be drawn.

Nodes are injection points, grouped by the service that calls. An edge says that one point was
called within the other. Pure: ``static/lineage.js`` draws what :meth:`LineageGraph.to_json` says,
and templates write the same as a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ldfi.dashboards.roles import Role
from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.experiments.domain.traffic.topology import Topology
from ldfi.fit.protocol.faults import DOWN
from ldfi.fit.protocol.points import Point
from ldfi.lineage.graph import ROOT
from ldfi.lineage.run_summary import Run

COLLAPSE_ABOVE: Final = 60
"""Points above which a graph is drawn with its services closed."""

_GRAVEST: Final = ("critical", "untested", "fallback", "optional")


@dataclass(frozen=True, slots=True)
class Node:
    """One point. ``standing`` is its role, or in a difference what became of it.

    ``share``: of the class's good requests, how many called it. ``marks``: kinds of fault that a
    hypothesis has here.
    """

    point: str
    service: str
    label: str
    callee: str
    standing: str
    share: float
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """``below`` is called within ``above``; None is the request itself."""

    above: str | None
    below: str


@dataclass(frozen=True, slots=True)
class LineageGraph:
    """Nodes in the order of their services and names."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @property
    def services(self) -> dict[str, list[Node]]:
        """The nodes by the service that calls."""
        grouped: dict[str, list[Node]] = {}
        for node in self.nodes:
            grouped.setdefault(node.service, []).append(node)
        return grouped

    def to_json(self) -> dict[str, Any]:
        """Write what the script draws. Everything in it is text or a number; nothing is markup."""
        place = {node.point: f"p{number}" for number, node in enumerate(self.nodes)}
        services = {service: f"s{number}" for number, service in enumerate(self.services)}
        return {
            "collapse": len(self.nodes) > COLLAPSE_ABOVE,
            "services": [
                {"id": services[name], "name": name, "standing": _gravest(nodes)}
                for name, nodes in self.services.items()
            ],
            "points": [
                {
                    "id": place[node.point],
                    "point": node.point,
                    "service": services[node.service],
                    "label": node.label,
                    "callee": node.callee,
                    "standing": node.standing,
                    "share": round(node.share, 4),
                    "marks": list(node.marks),
                }
                for node in self.nodes
            ],
            "edges": [
                [place[edge.above] if edge.above is not None else ROOT, place[edge.below]]
                for edge in self.edges
                if edge.below in place and (edge.above is None or edge.above in place)
            ],
        }


def class_graph(
    traffic: Traffic, roles: Mapping[str, Role], faults: Iterable[str] = ()
) -> LineageGraph:
    """Draw a class: every point it was ever seen to reach. ``faults``: those of a hypothesis."""
    topology, good, reached = traffic.topology, traffic.good, traffic.reached()
    marked = _marked(faults, topology)
    nodes = [
        _node(
            point,
            topology.callees.get(point, ""),
            role,
            reached[point] / good if good else 0.0,
            tuple(marked.get(point, ())),
        )
        for point, role in roles.items()
    ]
    return LineageGraph(_sorted(nodes), tuple(_edges(topology, roles)))


def difference(good: Run, bad: Run) -> LineageGraph:
    """Lay two runs over each other: what became in the bad one of each point of either."""
    standings = standings_of(good, bad)
    callees = {call.point: call.callee for run in (good, bad) for call in run.calls if call.callee}
    fired = {call.point: call.fired for call in bad.calls if call.fired}
    nodes = [
        _node(point, callees.get(point, ""), standing, 1.0, fired.get(point, ()))
        for point, standing in standings.items()
    ]
    edges = dict.fromkeys(
        Edge(None if call.within is None else run.calls[call.within].point, call.point)
        for run in (good, bad)
        for call in run.calls
        if call.within is None or run.calls[call.within].point != call.point
    )
    return LineageGraph(_sorted(nodes), tuple(edges))


def standings_of(good: Run, bad: Run) -> dict[str, str]:
    """Tell what became of each point in the bad run, beside the good one.

    ``injected``: it was made to fail; ``failed``: it failed, and had not; ``stood-in``: called only
    here, and well; ``not-reached``: called only in the good run; ``same``.
    """
    was = _by_point(good)
    standings: dict[str, str] = {}
    for point, (failed, fired) in _by_point(bad).items():
        if fired:
            standings[point] = "injected"
        elif failed and not was.get(point, (False, False))[0]:
            standings[point] = "failed"
        else:
            standings[point] = "same" if point in was else "stood-in"
    return standings | {point: "not-reached" for point in was if point not in standings}


def _by_point(run: Run) -> dict[str, tuple[bool, bool]]:
    """Tell for each point whether no call of it succeeded, and whether a fault was injected into
    one."""
    found: dict[str, tuple[bool, bool]] = {}
    for call in run.calls:
        failed, fired = found.get(call.point, (True, False))
        found[call.point] = (failed and call.failed, fired or bool(call.fired))
    return found


def _node(point: str, callee: str, standing: str, share: float, marks: tuple[str, ...]) -> Node:
    read = Point.parse(point)
    named = read.caller != "unknown"
    target = f"{callee or read.peer}{read.template}" if read.kind != "db" else read.template[1:]
    label = f"{read.operation} {target}".strip() if named else point
    service = read.caller if named else "unknown"
    return Node(point, service, label, callee or read.peer, standing, share, marks)


def _sorted(nodes: Iterable[Node]) -> tuple[Node, ...]:
    return tuple(sorted(nodes, key=lambda node: (node.service, node.label, node.point)))


def _edges(topology: Topology, points: Iterable[str]) -> Iterable[Edge]:
    """Find who is called right within whom: of the points above, the one with all the others
    above."""
    for point in points:
        for path in sorted(topology.paths.get(point, ()), key=sorted):
            if not path:
                yield Edge(None, point)
            for above in sorted(path):
                if path - {above} in topology.paths.get(above, ()):
                    yield Edge(above, point)


def _marked(faults: Iterable[str], topology: Topology) -> dict[str, list[str]]:
    """List the kinds of fault at each point; a fault domain is down at each of its points."""
    marked: dict[str, list[str]] = {}
    for fault in faults:
        kind, _, where = fault.partition("@")
        points = topology.shared().get(where, frozenset()) if fault.startswith(DOWN) else {where}
        for point in sorted(points):
            marked.setdefault(point, []).append(kind)
    return marked


def _gravest(nodes: Iterable[Node]) -> str:
    found = {node.standing for node in nodes}
    return next((each for each in _GRAVEST if each in found), min(found))
