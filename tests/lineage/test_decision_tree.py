"""The tree asks the best question at every node: held against trying all of them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from ldfi.lineage.decision_tree import Node, Sample, TreeLimits, grow

QUESTIONS = 5
SAMPLES = st.lists(
    st.builds(
        Sample,
        st.frozensets(st.integers(0, QUESTIONS - 1)),
        st.integers(0, 4),
        st.integers(1, 40),
    ),
    min_size=1,
    max_size=30,
)
LIMITS = st.builds(
    TreeLimits, st.integers(0, 4), st.integers(1, 20), st.sampled_from([1e-6, 0.01, 0.2])
)


def parts(samples: Sequence[Sample], question: int) -> tuple[list[Sample], list[Sample]]:
    """Who answers no, and who yes."""
    no = [sample for sample in samples if question not in sample.yes]
    return no, [sample for sample in samples if question in sample.yes]


def weight(samples: Sequence[Sample]) -> int:
    return sum(sample.weight for sample in samples)


def impurity(samples: Sequence[Sample]) -> float:
    """The entropy of the labels, by its definition."""
    of_label = [
        sum(each.weight for each in samples if each.label == label) / weight(samples)
        for label in {each.label for each in samples}
    ]
    return -sum(share * math.log2(share) for share in of_label)


def decrease(samples: Sequence[Sample], question: int) -> float:
    """Of the weighted impurity, by that question; in bits."""
    left = sum(weight(part) * impurity(part) for part in parts(samples, question))
    return weight(samples) * impurity(samples) - left


def allowed(samples: Sequence[Sample], leaf: int) -> list[int]:
    return [
        question
        for question in range(QUESTIONS)
        if all(weight(part) >= leaf for part in parts(samples, question))
    ]


def nodes(
    node: Node, samples: Sequence[Sample], depth: int = 0
) -> Iterator[tuple[Node, Sequence[Sample], int]]:
    """Every node with the samples that end up there and the questions above it."""
    yield node, samples, depth
    if node.fork is not None:
        no, yes = parts(samples, node.fork.question)
        yield from nodes(node.fork.no, no, depth + 1)
        yield from nodes(node.fork.yes, yes, depth + 1)


@given(SAMPLES, LIMITS)
def test_every_question_is_the_best_there_is(samples: list[Sample], limits: TreeLimits) -> None:
    least = limits.saved * weight(samples)
    for node, here, _ in nodes(grow(samples, limits), samples):
        if node.fork is None:
            continue
        asked = node.fork.question
        best = max(decrease(here, question) for question in allowed(here, limits.leaf))
        assert asked in allowed(here, limits.leaf)
        assert decrease(here, asked) >= best - 1e-9
        assert decrease(here, asked) >= least - 1e-6


@given(SAMPLES, LIMITS)
def test_it_stops_only_where_no_question_is_worth_it(
    samples: list[Sample], limits: TreeLimits
) -> None:
    least = limits.saved * weight(samples)
    for node, here, depth in nodes(grow(samples, limits), samples):
        if node.fork is None and depth < limits.depth:
            worth = [decrease(here, question) for question in allowed(here, limits.leaf)]
            assert max(worth, default=0.0) < least + 1e-6


@given(SAMPLES, LIMITS)
def test_nodes_hold_what_they_say_and_stay_within_limits(
    samples: list[Sample], limits: TreeLimits
) -> None:
    for node, here, depth in nodes(grow(samples, limits), samples):
        assert depth <= limits.depth
        assert node.weight == weight(here)
        assert depth == 0 or node.weight >= limits.leaf
        assert math.isclose(node.bits, weight(here) * impurity(here), abs_tol=1e-9)
        of_label = {each.label: 0 for each in here}
        for each in here:
            of_label[each.label] += each.weight
        assert node.weights == of_label
        assert node.label == min(of_label, key=lambda label: (-of_label[label], label))


@given(SAMPLES, LIMITS, st.integers(0, 99))
def test_the_order_of_samples_changes_nothing(
    samples: list[Sample], limits: TreeLimits, seed: int
) -> None:
    shuffled = random.Random(seed).sample(samples, len(samples))

    assert grow(shuffled, limits) == grow(samples, limits)


def test_of_questions_worth_the_same_the_first_is_asked() -> None:
    """Question 3 says the same as 1, and 0 the contrary of it."""
    samples = [Sample(frozenset({1, 3}), 0, 8), Sample(frozenset({0}), 1, 8)]

    tree = grow(samples, TreeLimits(depth=1, leaf=1, saved=0.01))

    assert tree.fork is not None
    assert tree.fork.question == 0
