"""The lineage graph: the call trees of many requests laid over one another, as a networkx graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import networkx as nx

from lineage.tree import Call, Tree

ROOT = "request"
"""The node from which every graph starts."""


def lineage_graph(trees: Iterable[Tree]) -> nx.DiGraph[Any]:
    """Nodes are points (and :data:`ROOT`); an edge says that one was called within the other.

    Node data: ``callee``, ``route``, ``calls`` (how often reached), ``failures``, ``detached``.
    Edge data: ``calls``.
    """
    graph: nx.DiGraph[Any] = nx.DiGraph()
    for tree in trees:
        graph.add_node(ROOT, callee=tree.service, route=tree.route)
        pending: list[tuple[str, Call]] = [(ROOT, call) for call in tree.calls]
        while pending:
            above, call = pending.pop()
            _count(graph, above, call)
            pending.extend((call.point, inner) for inner in call.calls)
    return graph


def _count(graph: nx.DiGraph[Any], above: str, call: Call) -> None:
    if call.point not in graph:
        graph.add_node(
            call.point, callee=call.callee, route=call.route, calls=0, failures=0, detached=False
        )
    node = graph.nodes[call.point]
    node["calls"] += 1
    node["failures"] += call.failed
    node["detached"] = call.detached
    node["callee"] = node["callee"] or call.callee
    if not graph.has_edge(above, call.point):
        graph.add_edge(above, call.point, calls=0)
    graph.edges[above, call.point]["calls"] += 1
