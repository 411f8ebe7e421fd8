"""Outlines: the same whatever the order of calls, and lossless in JSON."""

from __future__ import annotations

import json
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from ldfi.lineage.message_waits import SKEW
from ldfi.lineage.outline import Outline, every, fired_in, outline, side_by_side
from ldfi.testing.spans import span, tree

POINTS = st.sampled_from("abcd")
OUTLINES = st.recursive(
    st.builds(Outline, POINTS, st.booleans(), st.sampled_from([(), ("error",), ("delay",)])),
    lambda inner: st.builds(
        Outline, POINTS, st.booleans(), calls=st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=8,
)


def test_concurrent_calls_have_the_same_outline_in_whatever_order_they_began() -> None:
    found = set()
    for order in permutations(range(3)):
        spans = [
            span(str(place), "root", point=point, failed=point == "b", at=(2 + place, 9))
            for place, point in zip(order, ("a", "b", "a"), strict=True)
        ]
        found.add(outline(tree(span("root", kind="server", at=(1, 10)), *spans)))

    assert found == {(Outline("a", times=2), Outline("b", failed=True))}


def test_what_nobody_waits_for_is_left_out() -> None:
    built = tree(
        span("root", kind="server", at=(1, 10)),
        span("sent", "root", kind="client", point="a"),
        span("consumed", "sent", kind="consumer", service="other", at=(2, 2 * SKEW)),
    )

    assert [call.point for call in every(outline(built))] == ["a"]


def test_what_was_injected_is_said() -> None:
    built = tree(
        span("root", kind="server", at=(1, 10)),
        span("one", "root", point="a", failed=True, fired="error", at=(2, 3)),
        span("two", "one", point="b", fired="delay", at=(2, 3)),
    )

    assert fired_in(outline(built)) == {"error@a", "delay@b"}
    assert [call.ending for call in every(outline(built))] == [
        "error injected",
        "delay injected, ok",
    ]


def test_a_row_for_each_point_at_each_place() -> None:
    left = [Outline("a", calls=(Outline("b"),)), Outline("c", times=2)]
    right = [Outline("a", failed=True, fired=("error",)), Outline("c"), Outline("d", failed=True)]

    rows = [(row.depth, row.point, row.left, row.right) for row in side_by_side(left, right)]

    assert rows == [
        (0, "a", "ok", "error injected"),
        (1, "b", "ok", None),
        (0, "c", "ok ×2", "ok"),
        (0, "d", None, "failed"),
    ]


def test_a_retry_is_one_point_with_two_endings() -> None:
    (row,) = side_by_side([Outline("a")], [Outline("a", failed=True), Outline("a")])

    assert (row.right, row.differs) == ("failed + ok", True)


@given(st.lists(OUTLINES, max_size=4))
def test_json_keeps_all_and_nothing_differs_from_itself(calls: list[Outline]) -> None:
    assert [Outline.from_json(json.loads(json.dumps(each.to_json()))) for each in calls] == calls
    assert not any(row.differs for row in side_by_side(calls, calls))
