"""Classes are split where the tree of scikit-learn 1.9 split them, and on the same questions."""

from __future__ import annotations

import re

import pytest

from ldfi.lineage.shapes import Shapes
from ldfi.lineage.splitting import split
from tests.lineage.test_classes import request, shapes

REFERENCES = [
    (
        "7*ab?q0=green 2*a?q0=blue 3*ac?q0=red&q1=red 2*acx?q0=blue&q1=red 13*ac?q1=red 41*a "
        "3*ax?q0=blue",
        {"with q1", "without q1, q0 is green", "without q1, q0 is not green"},
    ),
    (
        "3*acx?q1=red 13*acx?q0=red&q1=red 3*abcx?q0=green&q1=green 13*a 2*ac?q1=blue "
        "2*ac?q1=red 41*abc?q0=green&q1=blue",
        {"q0 is green", "q0 is not green, with q1", "q0 is not green, without q1"},
    ),
    (
        "41*acd?q0=blue&q1=red&q2=red 3*a?q0=red 2*ac?q1=red&q2=blue "
        "7*acd?q0=red&q1=red&q2=red 3*a?q0=blue&q2=blue 2*ab?q0=green&q2=blue 2*a?q2=blue "
        "13*ac?q0=blue&q1=red&q2=blue",
        {"q2 is not red, with q1", "q2 is not red, without q1", "q2 is red"},
    ),
    (
        "3*a?q0=red 7*acd?q1=blue&q2=red 3*a?q0=blue&q2=blue 7*ab?q0=green "
        "13*ac?q0=blue&q1=red&q2=green 13*ac?q0=red&q1=red 3*ad?q0=red&q2=red",
        {"q1 is not red, q2 is not red", "q1 is not red, q2 is red", "q1 is red"},
    ),
    (
        "3*abcd?q0=green&q1=blue&q2=red 2*acd?q0=blue&q1=green&q2=red 2*a?q2=blue "
        "7*ac?q0=red&q1=green 7*ac?q0=blue&q1=green&q2=blue 41*ab?q0=green "
        "13*abcx?q0=green&q1=green&q2=green 2*ac?q1=green&q2=green",
        {"with q1, q0 is green", "with q1, q0 is not green", "without q1"},
    ),
    (
        "3*ac?q0=blue&q1=red 2*ac?q0=blue&q1=green 41*ax 13*ax?q0=blue 13*ac?q0=red&q1=blue "
        "7*ab?q0=green 13*a?q0=red 13*ac?q0=blue&q1=blue",
        {
            "with q1",
            "without q1, q0 is not red, q0 is green",
            "without q1, q0 is not red, q0 is not green",
            "without q1, q0 is red",
        },
    ),
    (
        "3*a?q0=blue 7*abx?q0=green 7*acx?q0=red&q1=blue 3*ac?q0=blue&q1=green "
        "7*acx?q0=blue&q1=blue 7*abc?q0=green&q1=blue 3*a",
        {"q1 is blue, q0 is green", "q1 is blue, q0 is not green", "q1 is not blue"},
    ),
    (
        "3*acd?q0=blue&q1=red&q2=red 2*acd?q1=blue&q2=red 7*a?q0=blue 7*acx?q0=blue&q1=green "
        "7*ac?q1=red&q2=blue 13*acd?q0=red&q1=blue&q2=red 13*acx?q1=red&q2=blue "
        "3*acd?q1=green&q2=red 3*ab?q0=green",
        {"q2 is not red, with q1", "q2 is not red, without q1", "q2 is red"},
    ),
    (
        "7*a?q0=red 7*a?q0=blue 2*a 13*ac?q0=red&q1=green 2*ac?q1=red 41*ax?q0=red "
        "2*abc?q0=green&q1=blue",
        {"with q1", "without q1, q0 is not red", "without q1, q0 is red"},
    ),
    (
        "7*ad?q0=blue&q2=red 2*a?q0=red&q2=blue 7*a?q0=blue 7*acx?q0=red&q1=blue "
        "2*acx?q1=red&q2=green 2*ac?q0=blue&q1=blue&q2=green 2*acx?q0=blue&q1=blue&q2=blue",
        {"with q1", "without q1, q2 is not red", "without q1, q2 is red"},
    ),
    (
        "2*acx?q0=blue&q1=blue&q2=blue 7*ac?q0=red&q1=green&q2=green 41*ab?q0=green&q2=blue "
        "7*abc?q0=green&q1=red 2*abc?q0=green&q1=blue&q2=green 7*ac?q0=red&q1=blue "
        "13*abcx?q0=green&q1=red 3*acdx?q0=red&q1=green&q2=red 7*acd?q0=blue&q1=red&q2=red",
        {
            "q2 is blue",
            "q2 is not blue, q0 is green",
            "q2 is not blue, q0 is not green, q2 is not red",
            "q2 is not blue, q0 is not green, q2 is red",
        },
    ),
    (
        "41*ac?q0=blue&q1=green&q2=green 3*ac?q0=blue&q1=blue 2*ab?q0=green 13*a?q2=green "
        "13*abcx?q0=green&q1=green 2*ac?q0=red&q1=blue&q2=blue 41*ax?q0=red",
        {
            "with q1, q0 is green",
            "with q1, q0 is not green",
            "without q1, q0 is not red",
            "without q1, q0 is red",
        },
    ),
]
"""So many requests that rely on these points, with this query, and the classes that scikit-learn
made of them: DecisionTreeClassifier with criterion="entropy", max_depth=3 and
min_impurity_decrease=0.01, leaves of five and more, six seeds that agreed."""


def collected(*groups: tuple[int, str, str]) -> Shapes:
    return shapes(*((count, request(points, query=query)) for count, points, query in groups))


@pytest.mark.parametrize(("requests", "expected"), REFERENCES)
def test_the_classes_are_those_of_scikit_learn(requests: str, expected: set[str]) -> None:
    groups = (re.split(r"[*?]", f"{each}?") for each in requests.split())
    found = split(list(collected(*((int(each[0]), each[1], each[2]) for each in groups))))

    named = {", ".join(map(str, leaf)).replace("query.", "") for leaf in found}
    assert named == expected


@pytest.mark.parametrize(("few", "classes"), [(5, 2), (4, 1)])
def test_five_requests_are_enough_for_a_class_of_their_own_and_four_are_not(
    few: int, classes: int
) -> None:
    """Also beside 289 others, where 5 / 294 * 294 is a little more than 5."""
    found = split(list(collected((294 - few, "a", ""), (few, "ab", "full=yes"))))
    assert len(found) == classes
