"""A small decision tree over questions that are answered yes or no.

The method is CART (Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees",
1984) with entropy for impurity: at every node the question is asked that leaves the fewest bits to
say which sample has which label, and both answers are grown on, down to a fixed depth. Greedy: it
looks one question ahead. Of questions that are worth the same, the first is asked, and sums are
rounded once (``math.fsum``), so the same samples give the same tree in whatever order they come.

A tree of a node costs time in proportion to the answers in its samples, times the depth.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """So many times (``weight``) the same answers went with the same label.

    ``yes``: the numbers of the questions that are answered yes; all others are answered no.
    """

    yes: frozenset[int]
    label: int
    weight: int


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """``depth``: questions above a leaf, at most. ``leaf``: the least weight of a node below the
    root. ``saved``: bits per sample of the whole that a question must save."""

    depth: int
    leaf: int
    saved: float


@dataclass(frozen=True, slots=True)
class Node:
    """Some of the samples. ``weights``: of each label among them. ``fork``: None in a leaf."""

    weights: Mapping[int, int]
    fork: Fork | None

    @property
    def weight(self) -> int:
        """Return how many samples are here."""
        return sum(self.weights.values())

    @property
    def bits(self) -> float:
        """Return the bits it takes to write their labels down: weight times entropy."""
        return _bits(self.weights)

    @property
    def label(self) -> int:
        """Return the commonest label, the lowest of several."""
        return min(self.weights, key=lambda label: (-self.weights[label], label))

    def leaves(self) -> Iterator[Node]:
        """Return the leaves below, or the node itself where it is one."""
        if self.fork is None:
            yield self
        else:
            yield from self.fork.no.leaves()
            yield from self.fork.yes.leaves()


@dataclass(frozen=True, slots=True)
class Fork:
    """A question, and where each answer leads."""

    question: int
    no: Node
    yes: Node


def grow(samples: Sequence[Sample], limits: TreeLimits) -> Node:
    """Return the tree that tells the labels of some samples apart, within limits."""
    least = limits.saved * sum(sample.weight for sample in samples)
    return _node(samples, limits.depth, limits.leaf, least)


def _node(samples: Sequence[Sample], depth: int, leaf: int, least: float) -> Node:
    weights = _weights(samples)
    question = _best(samples, weights, leaf, least) if depth and len(weights) > 1 else None
    if question is None:
        return Node(weights, None)
    no = [sample for sample in samples if question not in sample.yes]
    yes = [sample for sample in samples if question in sample.yes]
    below = (_node(part, depth - 1, leaf, least) for part in (no, yes))
    return Node(weights, Fork(question, *below))


def _best(
    samples: Sequence[Sample], weights: Mapping[int, int], leaf: int, least: float
) -> int | None:
    """Return the question that leaves the fewest bits; None where none saves enough."""
    total, bits = sum(weights.values()), _bits(weights)
    agreeing: dict[int, Counter[int]] = defaultdict(Counter)
    for sample in samples:
        for question in sample.yes:
            agreeing[question][sample.label] += sample.weight
    best, fewest = None, bits - least + _ROUNDING
    for question, yes in sorted(agreeing.items()):
        if not leaf <= yes.total() <= total - leaf:
            continue
        no = {label: weight - yes[label] for label, weight in weights.items()}
        left = _bits(no) + _bits(yes)
        if left < fewest:
            best, fewest = question, left
    return best


_ROUNDING = 1e-9
"""Bits by which a sum of logarithms may be off."""


def _weights(samples: Sequence[Sample]) -> Counter[int]:
    weights: Counter[int] = Counter()
    for sample in samples:
        weights[sample.label] += sample.weight
    return weights


def _bits(weights: Mapping[int, int]) -> float:
    total = sum(weights.values())
    return math.fsum(w * math.log2(total / w) for w in weights.values() if w)
