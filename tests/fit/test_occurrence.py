from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace

from ldfi.fit.inject import Occurrences
from tests.fit.clients.contract import Requests
from tests.fit.test_inject import POINT, hit

CALLS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("pq")), max_size=40)


@given(CALLS, st.integers(1, 5))
def test_the_first_calls_of_each_request_at_each_point(
    calls: list[tuple[int, str]], first: int
) -> None:
    counting = Occurrences()
    made: Counter[tuple[int, str]] = Counter()

    for request, point in calls:
        made[request, point] += 1
        expected = made[request, point] <= first
        assert counting.admits(request, point, first) == expected


def test_what_is_remembered_is_bounded_and_the_longest_untouched_goes_first() -> None:
    counting = Occurrences(remembered=2)
    for request in (1, 2, 1, 3):
        counting.admits(request, "p", 1)

    assert not counting.admits(1, "p", 1)
    assert counting.admits(2, "p", 1)


def test_threads_of_one_request_share_the_count() -> None:
    counting = Occurrences()
    with ThreadPoolExecutor(8) as pool:
        admitted = list(pool.map(lambda _: counting.admits(1, "p", 10), range(500)))

    assert sum(admitted) == 10


def test_a_request_is_hit_so_often(recorded_by: Requests, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        trace, "get_tracer", lambda *_, **__: recorded_by.provider.get_tracer("test")
    )
    with recorded_by.request(f"error:2@{POINT}"):
        assert [hit(recorded_by) for _ in range(4)] == [True, True, False, False]
    with recorded_by.request(f"error:2@{POINT}"):
        assert hit(recorded_by), "another request counts anew"

    (span,) = recorded_by.calls()
    assert dict(span.attributes or {})["fit.fired"] == "error"
