"""One experiment: which state follows which, who counts, and what the verdict is in the end."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ldfi.experiments.domain.campaign.result import result_of
from ldfi.experiments.domain.judging.admission import FEWEST
from ldfi.experiments.domain.judging.experiment import Experiment, ExperimentState, comparison_of
from ldfi.experiments.domain.judging.sequential_tests import Counts
from ldfi.experiments.domain.settings import PromqlOutcome, Settings
from ldfi.experiments.domain.traffic.observation import Observation, Outcome
from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.faults import Fault
from ldfi.lineage.lineage import Lineage
from ldfi.testing.spans import lineage, span
from tests.experiments.simulated import BOOT

FAULT = Fault("a", "error")
QUIET = lineage(span("root", kind="server"), span("a", "root"))
FIRED = lineage(span("root", kind="server"), span("a", "root", failed=True, fired="error"))
HOUR = 3_600.0


def an_experiment(settings: Settings | None = None, level: float = 1.0) -> Experiment:
    experiment = Experiment(
        "e1", "GET /", BOOT, frozenset({"error@a"}), (FAULT,), settings or Settings()
    )
    experiment.arm(0.0, level)
    experiment.taken()
    return experiment


def seen(
    number: int,
    arm: Arm,
    *,
    success: bool,
    fired: bool = True,
    device: str = "",
    start: int | None = None,
) -> Observation:
    run: Lineage = FIRED if arm == "treatment" and fired else QUIET
    would = frozenset({"error@a"}) if arm == "control" and fired else frozenset[str]()
    run = replace(run, experiment="e1", arm=arm, would_fire=would, trace_id=f"{number:032x}")
    run = replace(run, start=number if start is None else start)
    return Observation(run, Outcome(run.trace_id, device or f"d{number}", "", success))


def feed(experiment: Experiment, count: int, *, treated: bool, control: bool = True) -> None:
    """So many devices of each arm; ``treated`` and ``control``: whether these go right."""
    for number in range(count):
        experiment.observe(seen(2 * number, "control", success=control))
        experiment.observe(seen(2 * number + 1, "treatment", success=treated))


def settled(experiment: Experiment, now: float) -> bool:
    """Whether it ends when everybody has had time to report since the last edge stopped."""
    assert not experiment.settle(now, disarmed=True)
    return experiment.settle(now + experiment.settings.settle, disarmed=True)


def decide(experiment: Experiment, now: float = HOUR) -> str | None:
    experiment.review(now)
    assert settled(experiment, now)
    assert experiment.state == "decided"
    return experiment.verdict


# --- The state machine -------------------------------------------------------------------------

NEXT: dict[ExperimentState, set[ExperimentState]] = {
    "proposed": {"waiting", "armed", "aborted"},
    "waiting": {"armed", "aborted"},
    "armed": {"observing", "settling"},
    "observing": {"settling"},
    "settling": {"decided", "aborted"},
    "decided": set(),
    "aborted": set(),
}


class Life(RuleBasedStateMachine):
    """Whatever happens in whatever order: what is left is one of the arrows of the picture."""

    def __init__(self) -> None:
        super().__init__()
        hypothesis = frozenset({"error@a"})
        self.experiment = Experiment("e1", "GET /", BOOT, hypothesis, (FAULT,), self.settings)
        self.now = 100.0
        self.was: ExperimentState = "proposed"
        self.visited: set[ExperimentState] = set()
        self.counts = [0, 0, 0]
        self.disarms = 0

    settings: ClassVar[Settings] = Settings(min_samples=4)

    @precondition(lambda self: self.experiment.state == "proposed")
    @rule()
    def wait(self) -> None:
        self.experiment.wait("for approval")

    @precondition(lambda self: self.experiment.state in {"proposed", "waiting"})
    @rule(level=st.sampled_from([1.0, 1e-9]))
    def arm(self, level: float) -> None:
        self.experiment.arm(self.now, level)

    @rule()
    def taken(self) -> None:
        self.experiment.taken()

    @rule(
        device=st.integers(0, 30),
        arm=st.sampled_from(["treatment", "control"]),
        success=st.booleans(),
        fired=st.booleans(),
        times=st.integers(1, 12),
    )
    def observe(self, device: int, arm: Arm, success: bool, fired: bool, times: int) -> None:
        for each in range(device, device + times):
            self.experiment.observe(
                seen(each, arm, success=success, fired=fired, device=f"{arm}{each}")
            )

    @rule(more=st.integers(0, 5))
    def use(self, more: int) -> None:
        self.experiment.used += more

    @rule(seconds=st.sampled_from([0.1, 3.0, 30.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @rule(exhausted=st.booleans())
    def review(self, exhausted: bool) -> None:
        self.disarms += self.experiment.review(self.now, exhausted=exhausted)

    @rule()
    def abort(self) -> None:
        self.disarms += self.experiment.abort("enough", self.now)

    @rule(disarmed=st.booleans())
    def settle(self, disarmed: bool) -> None:
        was = self.experiment.state
        ended = self.experiment.settle(self.now, disarmed=disarmed)
        assert ended == (was == "settling" and self.experiment.over)
        assert disarmed or not ended

    @invariant()
    def it_goes_along_the_arrows(self) -> None:
        state = self.experiment.state
        assert state == self.was or state in NEXT[self.was]
        self.was = state
        self.visited.add(state)

    @invariant()
    def what_was_armed_has_settled_before_it_is_over(self) -> None:
        if self.experiment.over and self.experiment.armed_at is not None:
            assert "settling" in self.visited
        assert self.disarms == ("settling" in self.visited)

    @invariant()
    def only_the_decided_have_a_verdict_and_every_one_of_them(self) -> None:
        assert (self.experiment.verdict is not None) == (self.experiment.state == "decided")
        assert (self.experiment.ended_at is not None) == self.experiment.over

    @invariant()
    def counts_never_shrink(self) -> None:
        arms = self.experiment.arms.values()
        counts = [
            len(self.experiment.exposed),
            len(self.experiment.hurt),
            sum(len(arm.devices) for arm in arms),
        ]
        assert all(0 <= arm.failures <= len(arm.devices) for arm in arms)
        assert all(now >= before for now, before in zip(counts, self.counts, strict=True))
        assert self.experiment.hurt <= self.experiment.exposed
        self.counts = counts


TestLife = Life.TestCase
TestLife.settings = hypothesis_settings(stateful_step_count=30)


# --- Who counts --------------------------------------------------------------------------------


def test_a_harmful_one_is_put_down_to_what_fired() -> None:
    experiment = an_experiment()
    feed(experiment, 40, treated=False)

    assert experiment.review(5.0)
    assert settled(experiment, 5.1)
    assert (experiment.state, experiment.verdict) == ("decided", "harmful")
    result = result_of(experiment, frozenset({"a"}))
    assert result.succeeded is False
    assert result.fired == {"error@a"}


def test_requests_in_which_nothing_fired_count_in_neither_arm() -> None:
    # Given treated requests that never reach the point, and control requests that would not have
    experiment = an_experiment()
    for number in range(40):
        experiment.observe(seen(2 * number, "control", success=False, fired=False))
        experiment.observe(seen(2 * number + 1, "treatment", success=True, fired=False))

    # Then nobody was exposed, control's failures call nothing off, and nothing is proved
    assert not experiment.review(5.0)
    assert decide(experiment) == "inconclusive"
    assert experiment.reason == "no fault fired"
    assert result_of(experiment, frozenset()).succeeded is None
    assert not experiment.exposed
    assert len(experiment.passed_by) == 40


def test_only_control_requests_that_would_have_fired_are_compared_with() -> None:
    # Given a part of the users who never reach the point, and who all fail in both arms
    experiment = an_experiment()
    feed(experiment, 40, treated=True)
    for number in range(100, 180):
        beside = number - 100  # they ask all the time, as the others do
        experiment.observe(seen(number, "control", success=False, fired=False, start=beside))

    # Then they are left out of both
    assert decide(experiment) == "tolerated"
    assert comparison_of(experiment).control.failures == 0


def test_a_device_counts_once_with_its_first_outcome_however_often_it_asks() -> None:
    experiment = an_experiment()
    for number in range(100):
        arm: Arm = "treatment" if number % 2 else "control"
        experiment.observe(seen(number, arm, success=number < 2, device=arm))

    assert not experiment.review(5.0)
    assert {len(count.devices) for count in experiment.arms.values()} == {1}
    assert {count.failures for count in experiment.arms.values()} == {0}
    # But whoever was hurt later on was hurt
    assert experiment.hurt == {"treatment"}


def test_requests_that_come_after_the_end_change_nothing_but_are_counted() -> None:
    experiment = an_experiment()
    feed(experiment, 40, treated=True)
    assert decide(experiment) == "tolerated"

    for number in range(900, 1_000):
        experiment.observe(seen(number, "treatment", success=False))

    assert (experiment.verdict, len(experiment.arms["treatment"].devices)) == ("tolerated", 40)
    assert (len(experiment.exposed), len(experiment.hurt)) == (140, 100)


# --- When it ends ------------------------------------------------------------------------------


def test_failures_in_control_call_it_off() -> None:
    experiment = an_experiment(Settings(guardrail=0.3))
    for number in range(3):
        experiment.observe(seen(number, "control", success=False))
    assert not experiment.review(5.0)  # three may be chance
    experiment.controls = 20
    experiment.observe(seen(3, "control", success=False))
    assert not experiment.review(5.0)  # and four the first to report of twenty
    experiment.controls = 4

    assert experiment.review(5.0)
    assert experiment.state == "settling"
    assert experiment.settle(6.0, disarmed=True)
    assert (experiment.state, experiment.verdict) == ("aborted", None)
    assert experiment.reason == "100% of control devices saw failures"


def test_failures_in_control_within_the_guardrail_do_not() -> None:
    experiment = an_experiment(Settings(guardrail=0.3))
    for number in range(20):
        experiment.observe(seen(number, "control", success=number >= 6))

    assert not experiment.review(5.0)


def test_a_used_up_allowance_ends_it_once_everybody_has_reported() -> None:
    experiment = an_experiment()
    experiment.used = 3
    for number in range(2):
        experiment.observe(seen(number, "treatment", success=True))

    assert not experiment.review(5.0, exhausted=True)
    experiment.observe(seen(2, "treatment", success=True, fired=False))
    assert not experiment.review(5.0, exhausted=False)
    assert experiment.review(5.0, exhausted=True)
    assert experiment.reason == "members used up"


def test_the_window_ends_it_at_last() -> None:
    experiment = an_experiment(Settings(window=25.0))

    assert not experiment.review(24.9)
    assert experiment.review(25.0)
    assert experiment.reason == "window over"


@pytest.mark.parametrize("treated", [True, False])
def test_it_settles_until_everybody_has_had_time_since_the_last_edge_stopped(treated: bool) -> None:
    """What hurts no less: a success that is slower than a failure has to be waited for."""
    experiment = an_experiment(Settings(window=25.0, settle=5.0))
    feed(experiment, 40, treated=treated)
    assert experiment.review(5.0) or experiment.review(10.0)

    assert not experiment.settle(99.0, disarmed=False)  # somebody may still inject
    assert not experiment.settle(100.0, disarmed=True)  # and perhaps has until just now
    assert not experiment.settle(104.9, disarmed=True)
    assert experiment.settle(105.0, disarmed=True)
    assert experiment.verdict == ("tolerated" if treated else "harmful")


def test_what_is_called_off_waits_for_those_who_were_treated_and_no_longer() -> None:
    experiment = an_experiment(Settings(settle=5.0))
    experiment.used = 41
    feed(experiment, 40, treated=False)
    experiment.abort("halted", 10.0)

    assert not experiment.settle(10.1, disarmed=True)  # one has not reported
    experiment.observe(seen(999, "treatment", success=True))
    assert experiment.settle(10.2, disarmed=True)


def test_an_abort_while_it_settles_takes_the_verdict_away() -> None:
    experiment = an_experiment()
    feed(experiment, 40, treated=False)
    assert experiment.review(10.0)

    assert not experiment.abort("halted", 10.0)
    assert experiment.settle(10.1, disarmed=True)
    assert (experiment.state, experiment.verdict, experiment.reason) == ("aborted", None, "halted")


# --- The verdict -------------------------------------------------------------------------------


def late(experiment: Experiment, starts: Iterable[int], *, success: bool) -> None:
    for start in starts:
        experiment.observe(seen(10_000 + start, "treatment", success=success, start=start))


def test_failures_that_come_late_overturn_what_was_tolerated_too_early() -> None:
    # Given successes that come fast, so that it looks tolerated
    experiment = an_experiment()
    feed(experiment, 40, treated=True)
    assert not experiment.review(10.0)  # others may have begun as early, and not reported yet
    assert experiment.tests.verdict() == "tolerated"
    # When the failures of the same requests come later: they took longer
    late(experiment, range(40), success=False)
    # Then the order in which the requests began decides
    experiment.review(15.0)
    assert experiment.tests.verdict() != "tolerated"
    # And should they come when it has been stopped, that is no verdict either
    early = an_experiment()
    feed(early, 40, treated=True)
    assert not early.review(5.0)
    assert early.review(10.0)
    late(early, range(40), success=False)
    assert settled(early, 16.0)
    assert early.verdict != "tolerated"


def test_what_is_tolerated_need_not_last_where_everybody_has_reported() -> None:
    experiment = an_experiment()
    feed(experiment, 40, treated=True)
    arms = experiment.arms
    experiment.used = len(arms["treatment"].devices)
    experiment.controls = len(arms["control"].devices) + 1
    assert not experiment.review(10.0)  # one in control has not
    experiment.controls -= 1
    assert experiment.review(10.1)


def test_successes_that_come_late_overturn_what_hurt_too_early() -> None:
    # Given a fallback that is slow: what failed anyhow is the first to be heard of
    experiment = an_experiment()
    for number in range(30):
        experiment.observe(seen(20 * number, "control", success=number % 5 > 0))
        late(experiment, [20 * number + 1], success=False)
    assert experiment.review(10.0)
    assert experiment.tests.verdict() == "harmful"
    # When those that went right have reported, too
    late(experiment, (start for start in range(600) if start % 20 > 1), success=True)
    # Then nothing hurt
    assert settled(experiment, 16.0)
    assert experiment.verdict != "harmful"


@given(
    st.randoms(use_true_random=False),
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from([1, 5, 1_000]),
)
def test_who_reports_first_decides_nothing(
    rng: random.Random, control: float, treated: float, devices: int
) -> None:
    """Any order in which the same requests report gives the same verdict and the same evidence,
    also where devices ask again and again."""
    arms: list[Arm] = ["control", "treatment"]
    rates: dict[Arm, float] = {"control": control, "treatment": treated}
    requests = []
    for number in range(60):
        arm = rng.choice(arms)
        device = f"{arm} {rng.randrange(devices)}"
        requests.append(seen(number, arm, success=rng.random() < rates[arm], device=device))
    decided = []
    for _ in range(2):
        rng.shuffle(requests)
        experiment = an_experiment(Settings(guardrail=1.0))
        for request in requests:
            experiment.observe(request)
        decide(experiment)
        decided.append((experiment.verdict, experiment.tests.log_worse, experiment.tests.curve))
    assert decided[0] == decided[1]


def test_who_asks_again_at_once_counts_with_the_first_request() -> None:
    # Given a fallback that is slow, and devices that ask again before it has answered
    second, settle = 10**9, Settings().settle
    experiment = an_experiment()
    experiment.used = experiment.controls = experiment.enrolled = 40
    for number in range(40):
        began, device = 10 * second * number, f"t{number}"
        experiment.observe(seen(3 * number, "control", success=True, start=began))
        again = seen(3 * number + 1, "treatment", success=False, start=began + second)
        experiment.observe(replace(again, outcome=replace(again.outcome, device=device)))
    assert experiment.review(500.0)
    # When all have reported, but not all of their first requests
    for number in range(40):
        if number == 20:
            assert not experiment.settle(501.0, disarmed=True)
        began, device = 10 * second * number, f"t{number}"
        first = seen(3 * number + 2, "treatment", success=True, start=began, device=device)
        experiment.observe(first)
    # Then it is waited for these as well, and they are what counts
    assert experiment.settle(501.0 + settle, disarmed=True)
    assert experiment.verdict == "tolerated"


def test_who_was_hurt_later_counts_with_the_first_request_once_that_is_known() -> None:
    # Given two devices whose second requests failed at once, while the first are under way
    experiment = an_experiment()
    experiment.used = experiment.admission(0.0)
    for number in range(20):
        experiment.observe(seen(number, "control", success=True))
    for number, device in enumerate(["t0", "t1"]):
        experiment.observe(asked_again(100 + number, device, success=False))
    # Then that is not harm, and nobody else is let in
    assert not experiment.review(1.0)
    assert experiment.admission(1.0) == experiment.used == experiment.outstanding()
    # When the first request of one of them went right, and nothing is heard of the other's
    experiment.observe(seen(50, "treatment", success=True, device="t0"))
    assert not experiment.review(3.0)
    treated = experiment.arms["treatment"]
    assert (treated.total, treated.failures) == (1, 0)
    # Then that counts, and once it had time to be reported the second one of the other does
    assert not experiment.review(1.0 + experiment.settings.settle)
    assert (treated.total, treated.failures) == (2, 1)


def test_who_was_put_off_counts_in_the_verdict() -> None:
    experiment = an_experiment()
    for number in range(40):
        experiment.observe(seen(2 * number, "control", success=True))
        experiment.observe(asked_again(2 * number + 1, f"t{number}", success=False))
    assert decide(experiment) == "harmful"


def asked_again(number: int, device: str, *, success: bool) -> Observation:
    """A treated request of a device that has asked before, as the edge says."""
    first = seen(number, "treatment", success=success, device=device)
    again = lineage(span("root", kind="server", again="true"), span("a", "root", fired="error"))
    marked = replace(first.lineage, trace=again.trace)
    return replace(first, lineage=marked)


def test_failures_of_requests_that_began_last_overturn_nothing() -> None:
    experiment = an_experiment()
    feed(experiment, 40, treated=True)
    experiment.review(5.0)
    assert experiment.review(10.0)
    late(experiment, [10**9], success=False)

    assert settled(experiment, 16.0)
    assert experiment.verdict == "tolerated"


def test_silence_is_no_success() -> None:
    # Given forty devices that were fine, and so many that were treated and never heard of again
    experiment = an_experiment(Settings(delta=0.25))
    feed(experiment, 40, treated=True)
    experiment.used = 40 + 14
    assert decide(experiment) == "inconclusive"
    assert experiment.reason == "14 of 54 treated devices never reported"
    # When they are so few that heard and well is no rarer by δ
    few = an_experiment(Settings(delta=0.25))
    feed(few, 40, treated=True)
    few.used = 40 + 2
    assert decide(few) == "tolerated"


@pytest.mark.parametrize(("silent", "clear"), [(1, False), (0, True)])
def test_tolerated_takes_more_devices_where_more_are_silent(silent: int, clear: bool) -> None:
    # Given few of control that never reported, and treated devices that all did, but for one
    experiment = an_experiment()
    experiment.admission(0.0)
    feed(experiment, 30, treated=True)
    for number in range(100, 310):
        experiment.observe(seen(number, "control", success=True))
    experiment.used, experiment.controls = 30 + silent, 243
    assert not experiment.review(5.0)
    # Then that is enough, and where it is more of the treated, more are let in
    assert experiment.review(10.0) is clear
    more = experiment.admission(10.0)
    assert (more > experiment.used) is not clear
    if clear:
        return
    # When all of these report
    experiment.used = more
    late(experiment, range(100, 100 + more - 30 - silent), success=True)
    assert not experiment.review(11.0)
    # Then it was chance, once everybody has had time to report
    assert not experiment.review(15.0)
    assert experiment.review(16.0)


def test_who_crashed_and_reports_a_later_request_was_silent() -> None:
    # Given treated devices of which half crash with their first request, and report the next one
    experiment = an_experiment()
    feed(experiment, 20, treated=True)
    for number in range(100, 120):
        experiment.observe(seen(2 * number, "control", success=True))
        experiment.observe(asked_again(2 * number + 1, f"d{number}", success=True))
    experiment.used = experiment.controls = experiment.enrolled = 40
    # Then these are heard of, and nothing is known of what they were let in with
    assert decide(experiment) == "inconclusive"
    assert experiment.reason.endswith("20 of 40 treated devices never reported, 0 of 40 in control")


def test_an_inconclusive_one_says_that_the_treated_were_silent() -> None:
    experiment = an_experiment()
    feed(experiment, 3, treated=True)
    experiment.used, experiment.enrolled = 43, 3
    assert decide(experiment) == "inconclusive"
    said = "window over; 40 of 43 treated devices never reported, 0 of 3 in control"
    assert experiment.reason == said


def test_an_inconclusive_one_says_how_many_of_its_traces_were_cut() -> None:
    experiment = an_experiment()
    experiment.observe(seen(1, "treatment", success=True, fired=False))
    for arm in ("treatment", "treatment", "control"):
        experiment.lose(arm)

    assert decide(experiment) == "inconclusive"
    said = "no fault fired; 2 of 3 treated traces were cut: spans are missing"
    assert experiment.reason == said


def test_an_inconclusive_one_says_that_most_of_its_devices_passed_the_point_by() -> None:
    """As when a circuit breaker has opened after the first failures."""
    experiment = an_experiment()
    feed(experiment, 2, treated=True)
    for number in range(100, 138):
        experiment.observe(seen(number, "treatment", success=True, fired=False))

    assert decide(experiment) == "inconclusive"
    assert experiment.reason == "window over; 38 of 40 treated devices never reached the point"


def test_it_settles_for_as_long_as_traces_take() -> None:
    experiment = an_experiment(Settings(settle=5.0))
    feed(experiment, 2, treated=True)
    experiment.used = 3
    experiment.review(HOUR)
    assert not experiment.settle(HOUR, disarmed=True, traces=14.0)
    assert not experiment.settle(HOUR + 6.0, disarmed=True, traces=14.0)
    assert experiment.settle(HOUR + 14.0, disarmed=True, traces=14.0)


def test_the_next_are_let_in_when_the_traces_of_those_before_may_have_come() -> None:
    experiment = an_experiment(Settings(settle=5.0))
    experiment.used = few = experiment.admission(HOUR, traces=14.0)
    assert experiment.admission(HOUR, traces=14.0) == few
    assert experiment.admission(HOUR + 6.0, traces=14.0) == few
    assert experiment.admission(HOUR + 14.0, traces=14.0) > few


def test_who_was_not_waited_for_is_not_waited_for_again() -> None:
    # Given one of the first that never reports, and was given up
    experiment = an_experiment(Settings(settle=5.0))
    experiment.used = few = experiment.admission(HOUR)
    experiment.observe(seen(1, "treatment", success=True))
    assert experiment.admission(HOUR) == few
    more = experiment.admission(HOUR + 5.0)
    assert more > few
    # When all of the next have reported
    experiment.used = more
    for number in range(more - few):
        assert experiment.admission(HOUR + 6.0) == more
        experiment.observe(seen(2 + number, "treatment", success=True))
    # Then more are let in at once
    assert experiment.admission(HOUR + 6.0) > more


def test_who_was_hurt_while_nobody_of_control_had_reported_is_no_proof_of_health() -> None:
    """As there was no evidence yet, two of two failures counted as none: fourteen were let in."""
    experiment = an_experiment()
    experiment.used = experiment.admission(HOUR)
    for number in range(experiment.used):
        experiment.observe(seen(number, "treatment", success=False))

    assert experiment.admission(HOUR + 1.0) == experiment.used + 1


@given(st.sets(st.integers(4, 60), max_size=2))
@hypothesis_settings(max_examples=20)
def test_where_all_report_at_once_hardly_more_are_treated_than_tolerated_takes(
    hurt: set[int],
) -> None:
    experiment, second, takes = an_experiment(), 1.0, 0
    while not experiment.review(second):
        for number in range(experiment.used, experiment.admission(second)):
            for control in range(2):
                experiment.observe(seen(3 * number + control, "control", success=True))
            success = number not in hurt
            experiment.observe(seen(3 * number + 2, "treatment", success=success))
            experiment.used, experiment.controls = number + 1, 2 * (number + 1)
            takes = takes or experiment.used * (experiment.tests.verdict() == "tolerated")
        second += 1.0
    assert settled(experiment, second)
    assert experiment.verdict == "tolerated"
    assert takes <= experiment.used < takes + FEWEST


def test_a_low_level_asks_for_more_evidence() -> None:
    def looks(level: float) -> int:
        experiment, number = an_experiment(Settings(confirm=False), level), 0
        while experiment.tests.verdict() is None:
            experiment.observe(seen(2 * number, "control", success=True))
            experiment.observe(seen(2 * number + 1, "treatment", success=False))
            number += 1
        assert experiment.tests.verdict() == "harmful"
        return number

    assert looks(1e-9) > looks(1.0)


@pytest.mark.parametrize(
    ("control", "treated", "verdict"), [(20, 950, "harmful"), (20, 20, "tolerated")]
)
def test_a_look_at_counters_has_no_order(control: int, treated: int, verdict: str) -> None:
    """A thousand requests of either arm, of which so many failed: fed failures first, harm was
    called tolerated, for the two arms seemed alike until the failures of both were used up."""
    experiment = an_experiment(Settings(promql=PromqlOutcome("failed", "all")), level=1e-3)
    experiment.observe(seen(1, "treatment", success=False))  # proof that it fired
    experiment.count(Counts(1_000, control, 1_000, treated))

    assert experiment.review(5.0)
    assert decide(experiment) == verdict
    assert comparison_of(experiment).treatment.failures == treated


@pytest.mark.parametrize(
    ("failures", "verdict"), [(8, "harmful"), (7, "tolerated"), (0, "tolerated")]
)
def test_the_threshold_rule(failures: int, verdict: str) -> None:
    """More than 75 % of at least ten good samples; tolerated only when the window is over."""
    experiment = an_experiment(Settings(rule="threshold"))
    for number in range(10):
        experiment.observe(seen(number, "treatment", success=number >= failures))

    assert experiment.review(1.0) == (verdict == "harmful")
    assert decide(experiment) == verdict


@pytest.mark.parametrize("first", [True, False])
def test_a_device_that_contradicts_itself_failed_whatever_it_said_first(*, first: bool) -> None:
    experiment = an_experiment()
    for number in range(40):
        experiment.observe(seen(2 * number, "control", success=True))
        for success in (first, not first):
            experiment.observe(seen(2 * number + 1, "treatment", success=success))
            if not success:
                break  # what is better afterwards is not handed over
    treated = experiment.arms["treatment"]
    assert (treated.total, treated.failures) == (40, 40)
    assert (len(experiment.good), len(experiment.bad)) == (0, 40)
    assert decide(experiment) == "harmful"
