"""The lineage graph: the call trees of many requests laid over one another, as a networkx graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import networkx as nx

from ldfi.lineage.tree import Call, Tree

ROOT = "request"
"""The node from which every graph starts."""


def lineage_graph(trees: Iterable[tuple[Tree, int]]) -> nx.DiGraph[Any]:
    """Draw trees, each with the number of requests it stands for, as one graph.

    Nodes are points (and :data:`ROOT`), with ``callee``, ``route`` and ``detached`` (nobody waits
    for it). An edge says that one was called within the other, with ``calls`` and ``failures``.
    """
    graph: nx.DiGraph[Any] = nx.DiGraph()
    for tree, count in trees:
        graph.add_node(ROOT, callee=tree.service, route=tree.route, detached=False)
        pending: list[tuple[str, Call]] = [(ROOT, call) for call in tree.calls]
        while pending:
            above, call = pending.pop()
            _add(graph, above, call, count)
            pending.extend((call.point, inner) for inner in call.calls)
    return graph


def _add(graph: nx.DiGraph[Any], above: str, call: Call, count: int) -> None:
    known = graph.nodes.get(call.point, {})
    graph.add_node(
        call.point,
        callee=known.get("callee") or call.callee,
        route=known.get("route") or call.route,
        detached=call.detached,
    )
    if not graph.has_edge(above, call.point):
        graph.add_edge(above, call.point, calls=0, failures=0)
    edge = graph.edges[above, call.point]
    edge["calls"] += count
    edge["failures"] += count * call.failed
