"""Telling requests apart that enter by the same door but rely on different points.

A shallow decision tree (:mod:`ldfi.lineage.decision_tree`) learns the support from what is known on
arrival; its paths from the root to the leaves are conjunctions of conditions, which is just what an
edge can evaluate. A split must be worth it: leaves below a few requests, or that lead to the same
support as their siblings, are not made.

Nor may it be chance. A cache that is hit half of the time scatters supports over every feature
there is, and of many features one always seems to explain a little. So a question is only asked
where its answer saves more than it costs to write down (Rissanen, "Modeling by shortest data
description", Automatica 14, 1978): the bits that name the question, half of log2(n) for each
frequency that has to be told once more, and a margin for learning again day after day.

Nor may a question name somebody. A feature with more values than a kind of request could have is
asked for its presence at most, and of Falcor's keys those that are many in one place are not asked
for at all.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from ldfi.fit.protocol.predicate import Condition
from ldfi.lineage.decision_tree import Node, Sample, TreeLimits, grow
from ldfi.lineage.shapes import Shape

LIMITS = TreeLimits(depth=10, leaf=5, saved=0.01)
"""Fewer requests than a leaf's are noise. What keeps a tree shallow is what its questions cost; the
depth is for an address at which a dozen sets of paths are asked for."""

MAX_VALUES = 12
"""Values of one feature that may become conditions; the commonest ones."""

FEW_VALUES = 32
"""Values of one feature above which none of them becomes a condition: somebody types them."""

FEW_KEYS = 12
"""Keys in one place of Falcor's paths above which they are taken for names."""

MARGIN = 10.0
"""Bits that a question must save beyond its cost: a thousand to one."""

_DECIDED_ALREADY = frozenset(
    {
        *("method", "path", "route", "operation", "unread"),
        *("graphql.operation", "graphql.hash", "jsonrpc.method"),
    }
)

Leaf = tuple[Condition, ...]


def split(shapes: Sequence[Shape]) -> list[Leaf]:
    """Find conditions under which requests rely on different points; one empty leaf if none do."""
    conditions = _conditions(shapes)
    supports = [shape.lineage.support for shape in shapes]
    if not conditions or len(set(supports)) < 2:
        return [()]
    labels = {support: i for i, support in enumerate(sorted(set(supports), key=sorted))}
    samples = [
        Sample(_holding(conditions, shape), labels[shape.lineage.support], shape.count)
        for shape in shapes
    ]
    return _leaves(grow(samples, LIMITS), conditions)


def _holding(conditions: Sequence[Condition], shape: Shape) -> frozenset[int]:
    return frozenset(i for i, each in enumerate(conditions) if each.holds(shape.features))


def _conditions(shapes: Sequence[Shape]) -> list[Condition]:
    values: dict[str, Counter[str]] = {}
    for shape in shapes:
        for name, value in shape.features.items():
            if name not in _DECIDED_ALREADY:
                values.setdefault(name, Counter())[value] += shape.count
    conditions = []
    personal = _personal(values)
    for name, counts in sorted(values.items()):
        if name in personal:
            continue
        conditions.append(Condition(name))
        if 1 < len(counts) <= FEW_VALUES:
            commonest = sorted(counts, key=lambda value: (-counts[value], value))[:MAX_VALUES]
            conditions += [Condition(name, value) for value in commonest]
    return conditions


def _personal(names: Iterable[str]) -> frozenset[str]:
    """Name the features of Falcor's paths in which some key is one of many in its place."""
    paths = [tuple(name.split(".")) for name in names if name.startswith("falcor.")]
    keys: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for path in paths:
        for place in range(2, len(path)):
            keys[path[:place]].add(path[place])
    many = {before for before, found in keys.items() if len(found) > FEW_KEYS}
    return frozenset(
        ".".join(path)
        for path in paths
        if any(path[:place] in many for place in range(2, len(path)))
    )


def _leaves(tree: Node, conditions: Sequence[Condition]) -> list[Leaf]:
    """List the paths to the leaves; a question that decides nothing is taken back."""
    found: list[Leaf] = []
    pending: list[tuple[Node, Leaf]] = [(tree, ())]
    while pending:
        node, path = pending.pop()
        fork = node.fork
        if fork is None or not _tells(node, len(conditions)) or _same_answer(node):
            found.append(path)
            continue
        condition = conditions[fork.question]
        denied = Condition(condition.feature, condition.value, negated=not condition.negated)
        pending.append((fork.yes, (*path, condition)))
        pending.append((fork.no, (*path, denied)))
    return found


def _tells(node: Node, questions: int) -> bool:
    """Return whether this question, or one below it, explains more than chance does."""
    if node.fork is None:
        return False
    no, yes = node.fork.no, node.fork.yes
    saved = node.bits - no.bits - yes.bits
    frequencies = len(node.weights) - 1
    cost = math.log2(questions) + frequencies / 2 * math.log2(node.weight)
    return saved > cost + MARGIN or any(_tells(each, questions) for each in (no, yes))


def _same_answer(node: Node) -> bool:
    """Return whether everything below a node leads to the same support."""
    return len({leaf.label for leaf in node.leaves()}) == 1
