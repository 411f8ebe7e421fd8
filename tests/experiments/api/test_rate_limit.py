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
from tests.kit.service import application, bearer, client_of, problem


class Clock:
    """A clock that stands still until it is told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def passes(limiter: RateLimiter, rate: Rate, key: object = "k") -> bool:
    try:
        limiter.take(key, rate)
    except Problem as error:
        assert error.status == 429
        return False
    return True


@given(
    st.builds(Rate, st.floats(0.1, 50), st.integers(1, 20)),
    st.lists(st.floats(0, 3), max_size=80),
)
def test_no_more_pass_than_a_bucket_allows(rate: Rate, waits: list[float]) -> None:
    """Against a bucket counted out: full at first, filling at the rate, one drop a request."""
    clock = Clock()
    limiter, level = RateLimiter(clock), float(rate.burst)
    for wait in waits:
        clock.now += wait
        level = min(rate.burst, level + wait * rate.per_second)
        passed = passes(limiter, rate)
        if abs(level - 1) > 1e-6:
            assert passed is (level >= 1)
        if passed:
            level -= 1


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


def test_guessing_tokens_is_slow_and_does_not_lock_out_those_who_have_one(
    database: Database,
) -> None:
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
