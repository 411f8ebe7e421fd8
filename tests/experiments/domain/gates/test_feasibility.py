"""Feasibility against the tests that judge: what is promised comes, what is refused could not."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.gates.feasibility import (
    MOST_CONTROL,
    Flow,
    chosen,
    estimate,
    needed,
    why_not,
)
from ldfi.experiments.domain.judging import sequential_tests as judging
from ldfi.experiments.domain.judging.sequential_tests import Verdict
from ldfi.experiments.domain.settings import LONGEST_WINDOW, PROFILES, Profile, Settings

RATES = st.floats(0.01, 2000)
VERDICTS: tuple[Verdict, Verdict] = ("harmful", "tolerated")


def decided(
    bounds: Settings, flow: Flow, verdict: Verdict, level: float, rng: random.Random
) -> bool:
    """One window of arrivals at random, judged by the service's own tests."""
    share = bounds.treatment + bounds.control
    thresholds = replace(bounds, alpha_harmful=min(level, bounds.alpha_harmful))
    tests = judging.tests_for(bounds.rule, thresholds, bounds.control / bounds.treatment)
    clock, members = rng.expovariate(flow.per_second * share), 0
    while clock < bounds.window and members < bounds.members:
        treated = rng.random() * share < bounds.treatment
        members += treated
        hurt = treated and verdict == "harmful"
        tests.add(treated=treated, failed=hurt or rng.random() < flow.failing)
        clock += rng.expovariate(flow.per_second * share)
    return tests.final() == verdict


@given(RATES, st.sampled_from([0.005, 0.05, 0.2]), st.sampled_from([1.0, 1e-4]))
def test_what_is_refused_could_hardly_decide(rate: float, share: float, level: float) -> None:
    bounds = Settings(treatment=share, control=share)
    flow = Flow("GET /", rate)
    made = estimate(bounds, flow, level)
    rng = random.Random(0)
    for verdict in VERDICTS:
        came = sum(decided(bounds, flow, verdict, level, rng) for _ in range(40)) / 40
        takes = getattr(made, verdict).treated
        expected = min(made.expected, bounds.members)
        if expected < 0.5 * takes:
            assert came < 0.5
        if expected > 2.5 * takes:
            assert came > 0.5
    assert (why_not(bounds, [made]) is None) == (made.decides != "nothing")


@given(RATES, st.sampled_from(["staging", "production"]), st.sampled_from([0.0, 0.02, 0.08]))
def test_a_profile_decides_or_is_refused(rate: float, profile: Profile, failing: float) -> None:
    flow, caution = Flow("GET /", rate, failing), PROFILES[profile]
    bounds = chosen(Settings(profile=profile), (), [flow])
    # Then it keeps to what the profile allows
    assert caution.least <= bounds.treatment <= caution.most
    assert bounds.treatment <= bounds.control <= MOST_CONTROL
    assert bounds.window <= caution.window
    # And what is not refused comes to both verdicts, in nearly every window
    made = estimate(bounds, flow)
    if made.decides == "both" and made.expected > 20:
        rng = random.Random(1)
        for verdict in VERDICTS:
            came = sum(decided(bounds, flow, verdict, 1.0, rng) for _ in range(30))
            assert came > (20 if not failing else 10)


def test_the_defaults_at_eighteen_requests_a_minute_are_refused_with_the_ways_out() -> None:
    bounds = Settings()
    said = why_not(bounds, [estimate(bounds, Flow("GET /boot", 18 / 60))])
    assert said == (
        "no class can decide anything in 120 s with 1.00% of all devices treated. GET /boot: 18 "
        "requests a minute, so 0.36 treated in 120 s; harmful takes 2 and tolerated takes 20, "
        "6,667 s. What would do for GET /boot: shares of 0.4 and a window of 250 s, or 1,000 "
        "requests a minute."
    )


def test_each_way_out_is_one() -> None:
    flow, bounds = Flow("GET /boot", 18 / 60), Settings()
    for way in (
        replace(bounds, treatment=0.4, control=0.4, window=250),
        chosen(replace(bounds, profile="staging"), (), [flow]),
    ):
        assert estimate(way, flow).decides == "both"
    assert estimate(bounds, Flow("GET /boot", 1_001 / 60)).decides == "both"


def test_members_may_be_too_few() -> None:
    bounds = Settings(members=1)
    made = estimate(bounds, Flow("GET /", 1000))
    assert made.decides == "nothing"
    assert "20 members" in (why_not(bounds, [made]) or "")


def test_a_class_that_fails_by_itself_takes_more() -> None:
    calm, shaky = (needed(Settings(), "tolerated", failing) for failing in (0.0, 0.1))
    assert calm is not None
    assert shaky is not None
    assert calm.treated <= shaky.treated


def test_e_lond_makes_harm_harder_to_show() -> None:
    early, late = (
        needed(Settings(min_samples=1, confirm=False), "harmful", 0, level) for level in (1, 1e-9)
    )
    assert early is not None
    assert late is not None
    assert early.treated < late.treated


def test_the_published_rule_takes_its_samples() -> None:
    for verdict in VERDICTS:
        counted = needed(Settings(rule="threshold", min_samples=12), verdict)
        assert counted is not None
        assert counted.treated == 12


def test_what_was_given_stays() -> None:
    bounds = Settings(profile="staging", treatment=0.1, window=30)
    made = chosen(bounds, {"treatment", "window"}, [Flow("GET /", 1)])
    assert (made.treatment, made.control, made.window) == (0.1, 0.4, 30)


def test_one_class_that_can_decide_is_enough() -> None:
    bounds = Settings()
    slow, busy = (estimate(bounds, Flow(name, rate)) for name, rate in (("a", 0.1), ("b", 100)))
    assert why_not(bounds, [slow]) is not None
    assert why_not(bounds, [slow, busy]) is None
    assert why_not(bounds, []) is None


@pytest.mark.parametrize("profile", ["staging", "production"])
def test_a_profile_without_traffic_goes_to_its_limits(profile: Profile) -> None:
    bounds = chosen(Settings(profile=profile), (), [])
    assert bounds.treatment == PROFILES[profile].most


@given(st.floats(0, 1, exclude_min=True, exclude_max=True), st.sampled_from([0.0, 0.3, 1.0]))
def test_any_bound_that_is_allowed_has_an_answer(delta: float, failing: float) -> None:
    flow = Flow("GET /", 1.0, failing)
    bounds = Settings(delta=delta, alpha_harmful=1e-300, alpha_tolerated=1e-300, members=1)
    assert why_not(bounds, [estimate(bounds, flow)])


@given(RATES, st.floats(0.05, 0.95))
def test_of_a_rare_point_only_callers_count_and_all_are_treated(rate: float, share: float) -> None:
    bounds = Settings(treatment=0.2, control=0.2, window=30.0, members=100)
    of_all = estimate(bounds, Flow("GET /", rate))
    rarest = estimate(bounds, Flow("GET /", rate, rarest=share)).at_rarest
    assert of_all.at_rarest is None
    assert rarest is not None
    # observed for so long that as many come by as elsewhere, if that may be
    longest = LONGEST_WINDOW / bounds.window
    assert rarest.expected == pytest.approx(of_all.expected * min(1.0, share * longest))
    # who passes by is treated as well, and counts among the members
    assert rarest.members == int(share * bounds.members)
    assert rarest.seconds == pytest.approx(of_all.seconds / share)
    said = estimate(bounds, Flow("GET /", rate, rarest=share)).to_json()
    assert said["rarest"]["decides"] == rarest.decides
    assert f"{share:.0%} of them call its rarest point" in said["words"]
