"""Telling requests apart that enter by the same door but rely on different points.

A shallow decision tree (scikit-learn's CART) learns the support from what is known on arrival; its
paths from the root to the leaves are conjunctions of conditions, which is just what an edge can
evaluate. A split must be worth it: leaves below a few requests, or that lead to the same support
as their siblings, are not made.

Nor may it be chance. A cache that is hit half of the time scatters supports over every feature
there is, and of many features one always seems to explain a little. So a question is only asked
where its answer saves more than it costs to write down (Rissanen, "Modeling by shortest data
description", Automatica 14, 1978): the bits that name the question, half of log2(n) for each
frequency that has to be told once more, and a margin for learning again day after day.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ldfi.fit.predicate import Condition
from ldfi.lineage.shapes import Shape

DEPTH = 3
SMALLEST_LEAF = 5
"""Requests below which a leaf is noise."""

MAX_VALUES = 12
"""Values of one feature that may become conditions; the commonest ones."""

MARGIN = 10.0
"""Bits that a question must save beyond its cost: a thousand to one."""

_DECIDED_ALREADY = frozenset({"method", "path", "operation"})

Leaf = tuple[Condition, ...]


def split(shapes: Sequence[Shape]) -> list[Leaf]:
    """Find conditions under which requests rely on different points; one empty leaf if none do."""
    conditions = _conditions(shapes)
    supports = [shape.lineage.support for shape in shapes]
    if not conditions or len(set(supports)) < 2:
        return [()]
    from sklearn.tree import DecisionTreeClassifier

    labels = {support: i for i, support in enumerate(sorted(set(supports), key=sorted))}
    tree = DecisionTreeClassifier(
        criterion="entropy",
        max_depth=DEPTH,
        min_weight_fraction_leaf=min(0.5, SMALLEST_LEAF / sum(s.count for s in shapes)),
        min_impurity_decrease=0.01,
        random_state=0,
    )
    rows = [[float(c.holds(shape.features)) for c in conditions] for shape in shapes]
    weights = [float(shape.count) for shape in shapes]
    tree.fit(rows, [labels[support] for support in supports], sample_weight=weights)
    return _leaves(tree.tree_, conditions)


def _conditions(shapes: Sequence[Shape]) -> list[Condition]:
    values: dict[str, Counter[str]] = {}
    for shape in shapes:
        for name, value in shape.features.items():
            if name not in _DECIDED_ALREADY:
                values.setdefault(name, Counter())[value] += shape.count
    conditions = []
    for name, counts in sorted(values.items()):
        conditions.append(Condition(name))
        commonest = sorted(counts, key=lambda value: (-counts[value], value))[:MAX_VALUES]
        conditions += [Condition(name, value) for value in commonest if len(counts) > 1]
    return conditions


def _leaves(tree: Any, conditions: Sequence[Condition]) -> list[Leaf]:
    """List the paths to the leaves; a question that decides nothing, or by chance, is taken
    back."""
    found: list[Leaf] = []
    pending: list[tuple[int, Leaf]] = [(0, ())]
    while pending:
        node, path = pending.pop()
        if not _tells(tree, node, len(conditions)) or _same_answer(tree, node):
            found.append(path)
            continue
        condition = conditions[tree.feature[node]]
        denied = Condition(condition.feature, condition.value, negated=not condition.negated)
        pending.append((int(tree.children_right[node]), (*path, condition)))
        pending.append((int(tree.children_left[node]), (*path, denied)))
    return found


def _tells(tree: Any, node: int, questions: int) -> bool:
    """Tell whether this question, or one below it, explains more than chance does."""
    left, right = int(tree.children_left[node]), int(tree.children_right[node])
    if left < 0:
        return False
    requests, entropy = tree.weighted_n_node_samples, tree.impurity
    saved = requests[node] * entropy[node] - sum(requests[i] * entropy[i] for i in (left, right))
    frequencies = int((tree.value[node] > 0).sum()) - 1
    cost = math.log2(questions) + frequencies / 2 * math.log2(requests[node])
    return saved > cost + MARGIN or any(_tells(tree, i, questions) for i in (left, right))


def _same_answer(tree: Any, node: int) -> bool:
    """Tell whether everything below a node leads to the same support."""
    answers, pending = set(), [node]
    while pending:
        each = pending.pop()
        if tree.children_left[each] < 0:
            answers.add(int(tree.value[each].argmax()))
        else:
            pending += [int(tree.children_left[each]), int(tree.children_right[each])]
    return len(answers) == 1
