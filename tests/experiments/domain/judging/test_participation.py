"""A device counts with all that it does while it takes part, in both arms alike."""

from __future__ import annotations

import random
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.judging.ordered_outcomes import Ordered
from ldfi.experiments.domain.judging.participation import Stays
from ldfi.experiments.domain.judging.sequential_tests import SequentialTests, Verdict
from ldfi.experiments.domain.settings import Thresholds

SECOND = 1_000_000_000
GIVEN = Thresholds(alpha_harmful=0.025)


@dataclass(frozen=True)
class Request:
    """``reached``: it counts, a fault fired in it or would have."""

    start: int
    device: int
    reached: bool
    failed: bool

    @property
    def trace_id(self) -> str:
        return f"{self.start:032x}"


def fresh(seconds: float) -> Stays:
    return Stays(
        Ordered(SequentialTests(GIVEN, 3.0)), Ordered(SequentialTests(GIVEN, 3.0)), seconds
    )


def told(stays: Stays, requests: list[Request]) -> None:
    """Tell of requests as an experiment does, in whatever order they are reported. Devices with
    even numbers are treated."""
    for each in requests:
        if each.failed:
            stays.fail(f"d{each.device}", each.start)
        if each.reached:
            treated = each.device % 2 == 0
            stays.take(f"d{each.device}", (each.start, each.trace_id, treated, each.failed))


def brute(requests: list[Request], seconds: float, *, whole: bool) -> SequentialTests:
    """The same from the definition: of each device its first request that counts, in order."""
    tests = SequentialTests(GIVEN, 3.0)
    first: dict[int, Request] = {}
    for each in sorted(requests, key=lambda each: each.start):
        if each.reached:
            first.setdefault(each.device, each)
    for device, counts in first.items():
        ends = counts.start + seconds * SECOND
        mine = [each for each in requests if each.device == device]
        stay = any(each.failed for each in mine if counts.start <= each.start <= ends)
        tests.add(treated=device % 2 == 0, failed=stay if whole else counts.failed)
    return tests


def drawn(rng: random.Random) -> list[Request]:
    rates = rng.choice([(0.02, 0.02), (0.02, 0.5), (0.3, 0.3), (0.0, 0.0)])
    requests = []
    for start in rng.sample(range(300 * SECOND), rng.randint(0, 120)):
        device = rng.randrange(40)
        failed = rng.random() < rates[device % 2 == 0]
        requests.append(Request(start, device, rng.random() < 0.7, failed))
    return requests


@given(st.integers(0, 2**32), st.sampled_from([0.0, 5.0, 60.0]))
def test_stays_are_judged_as_defined(seed: int, seconds: float) -> None:
    """At every moment, whoever reports first; failures of both arms are those of stays."""
    rng = random.Random(seed)
    requests, stays = drawn(rng), fresh(seconds)
    rng.shuffle(requests)
    half = len(requests) // 2
    for known in (requests[:half], requests):
        told(stays, known if known is not requests else requests[half:])
        for order, whole in ((stays.first, False), (stays.own, seconds > 0)):
            tests = brute(known, seconds, whole=whole)
            assert (order.tests.log_worse, order.tests.log_not_worse) == (
                tests.log_worse,
                tests.log_not_worse,
            )


@given(st.integers(0, 2**32))
def test_either_test_convicts_and_both_acquit(seed: int) -> None:
    rng = random.Random(seed)
    requests, stays = drawn(rng), fresh(60.0)
    told(stays, requests)
    said = {brute(requests, 60.0, whole=whole).final() for whole in (False, True)}
    expected: Verdict = "harmful" if "harmful" in said else "inconclusive"
    assert stays.final() == ("tolerated" if said == {"tolerated"} else expected)


def test_what_fails_by_itself_as_often_in_both_arms_is_no_harm() -> None:
    """Devices ask until their stay is over, each request as likely to fail; at every look."""
    rng, alarms = random.Random(1), 0
    for _ in range(300):
        stays, now = fresh(30.0), 0
        for number in range(80):
            device = f"d{number}"
            now += rng.randrange(SECOND)
            treated = rng.random() < 0.25
            stays.take(device, (now, f"{number:032x}", treated, rng.random() < 0.02))
            for later in range(10):
                if rng.random() < 0.02:
                    stays.fail(device, now + (1 + 3 * later) * SECOND)
        alarms += stays.final() == "harmful"
    assert alarms <= 15  # α = 0.05 for both; it is far below
