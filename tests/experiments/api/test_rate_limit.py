from __future__ import annotations

import pytest
from fastapi import APIRouter
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.api import rate_limit
from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.problems import Problem
from ldfi.experiments.api.rate_limit import PEOPLE, STRANGERS, Rate, RateLimiter
from ldfi.experiments.store.database import Database
from tests.kit.service import GIVEN, application, bearer, client_of, problem, service


class Clock:
    """A clock that stands still until it is told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def passes(limiter: RateLimiter, rate: Rate, key: object = "k", parts: int = 1) -> bool:
    try:
        limiter.take(key, rate, parts)
    except Problem as error:
        assert error.status == 429
        return False
    return True


@given(
    st.builds(Rate, st.floats(0.1, 50), st.integers(1, 20)),
    st.lists(st.tuples(st.floats(0, 3), st.integers(1, 30)), max_size=80),
)
def test_no_more_pass_than_a_bucket_allows(rate: Rate, waits: list[tuple[float, int]]) -> None:
    """Against a bucket counted out: full at first, filling at the rate, a drop a part of a request;
    what is larger than the bucket takes all of it."""
    clock = Clock()
    limiter, level = RateLimiter(clock), float(rate.burst)
    for wait, parts in waits:
        clock.now += wait
        level, needed = min(rate.burst, level + wait * rate.per_second), min(parts, rate.burst)
        passed = passes(limiter, rate, parts=parts)
        if abs(level - needed) > 1e-6:
            assert passed is (level >= needed)
        if passed:
            level -= needed


def test_who_waits_as_told_passes() -> None:
    clock = Clock()
    limiter, rate = RateLimiter(clock), Rate(0.25, 3)
    assert [passes(limiter, rate) for _ in range(4)] == [True, True, True, False]
    with pytest.raises(Problem) as refused:
        limiter.take("k", rate)
    assert refused.value.headers == {"Retry-After": "4"}

    clock.now += 4
    assert passes(limiter, rate)
    assert not passes(limiter, rate)
    assert passes(limiter, rate, "somebody else")


def test_memory_is_bounded_and_keeps_the_busiest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "MAX_BUCKETS", 10)
    limiter, rate = RateLimiter(Clock()), Rate(1, 2)
    assert [passes(limiter, rate, "busy") for _ in range(3)] == [True, True, False]
    for stranger in range(100):
        assert passes(limiter, rate, stranger)
        assert len(limiter._full_at) <= 10
    assert not passes(limiter, rate, "busy")


def guarded() -> APIRouter:
    router = APIRouter()

    @router.get("/viewer")
    def viewer(caller: Viewer) -> str:
        return caller.name

    return router


def test_guessing_tokens_is_slow_and_locks_nobody_out(database: Database) -> None:
    app = application(database, [guarded()])
    app.state.rate_limiter = RateLimiter(Clock())
    with client_of(app) as client:
        guesses = [
            problem(client.get("/viewer", headers=bearer(f"guess-number-{number}")))
            for number in range(STRANGERS.burst + 5)
        ]
        assert guesses == ["unauthorized"] * STRANGERS.burst + ["rate-limited"] * 5
        assert client.get("/viewer").json() == "admin"


def test_each_token_has_its_share(database: Database) -> None:
    app = application(database, [guarded()])
    app.state.rate_limiter = RateLimiter(Clock())
    with client_of(app) as client:
        answers = [client.get("/viewer") for _ in range(PEOPLE.burst + 1)]
        assert all(answer.is_success for answer in answers[:-1])
        assert problem(answers[-1]) == "rate-limited"
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert client.get("/viewer", headers=bearer("viewer-0123456789abcdef")).is_success


def test_what_devices_send_is_limited_by_how_much_it_is() -> None:
    app = service("sqlite://")
    metric = {"device": "d" * 20, "trace_id": "a" * 32, "outcome": "success"}
    batch = {"metrics": [metric] * 9_999}
    with client_of(app, GIVEN["devices"]) as client:
        answers = [client.post("/api/v1/device-metrics", json=batch) for _ in range(13)]

    taken = [each for each in answers if each.status_code == 202]
    assert 2 <= len(taken) <= 6
    assert {problem(each) for each in answers if each not in taken} == {"rate-limited"}
