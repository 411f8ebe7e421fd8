"""Telling requests apart that enter by the same door but rely on different points.

A shallow decision tree (scikit-learn's CART) learns the support from what is known on arrival; its
paths from the root to the leaves are conjunctions of conditions, which is just what an edge can
evaluate. A split must be worth it: leaves below a few requests, or that lead to the same support
as their siblings, are not made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from fit.predicate import Condition
from lineage.shapes import Shape

DEPTH = 3
SMALLEST_LEAF = 5
"""Requests below which a leaf is noise."""

MAX_VALUES = 12
"""Values of one feature that may become conditions; the commonest ones."""

_DECIDED_ALREADY = frozenset({"method", "path", "operation"})

Leaf = tuple[Condition, ...]


def split(shapes: Sequence[Shape]) -> list[Leaf]:
    """Conditions under which requests rely on different points; one empty leaf if none do."""
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
    """Paths to the leaves; a leaf that decides nothing its sibling does not is taken back."""
    found: list[Leaf] = []
    pending: list[tuple[int, Leaf]] = [(0, ())]
    while pending:
        node, path = pending.pop()
        if tree.children_left[node] < 0 or _same_answer(tree, node):
            found.append(path)
            continue
        condition = conditions[tree.feature[node]]
        denied = Condition(condition.feature, condition.value, negated=not condition.negated)
        pending.append((int(tree.children_right[node]), (*path, condition)))
        pending.append((int(tree.children_left[node]), (*path, denied)))
    return found


def _same_answer(tree: Any, node: int) -> bool:
    """Whether everything below a node leads to the same support."""
    answers, pending = set(), [node]
    while pending:
        each = pending.pop()
        if tree.children_left[each] < 0:
            answers.add(int(tree.value[each].argmax()))
        else:
            pending += [int(tree.children_left[each]), int(tree.children_right[each])]
    return len(answers) == 1
