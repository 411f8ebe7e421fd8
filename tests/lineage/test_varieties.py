from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ldfi.lineage.varieties import MOST, varieties

supports = st.dictionaries(
    st.frozensets(st.sampled_from("abcdef")), st.integers(1, 100), max_size=12
)


@given(supports)
def test_every_request_is_of_one_variety(counts: dict[frozenset[str], int]) -> None:
    found = varieties(counts)
    assert sum(each.requests for each in found) == sum(counts.values()) or len(found) == MOST
    assert {each.support for each in found} <= counts.keys()
    assert [each.requests for each in found] == sorted((e.requests for e in found), reverse=True)


def test_a_rare_support_counts_with_the_one_it_is_like() -> None:
    found = varieties({frozenset("abc"): 60, frozenset("de"): 38, frozenset("ab"): 2})
    assert [(set(each.support), each.requests) for each in found] == [
        ({"a", "b", "c"}, 62),
        ({"d", "e"}, 38),
    ]


def test_a_rare_support_that_is_like_none_is_a_variety() -> None:
    assert len(varieties({frozenset("abc"): 98, frozenset("xyz"): 2})) == 2
