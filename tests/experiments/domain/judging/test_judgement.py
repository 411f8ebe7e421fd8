"""What becomes of what the tests say: harm is harm of treated devices, whatever befalls others."""

from __future__ import annotations

import math
from typing import Literal

from hypothesis import example, given
from hypothesis import strategies as st

from ldfi.experiments.domain.campaign.result import result_of
from ldfi.experiments.domain.judging.bystanders import Bystanders
from ldfi.experiments.domain.judging.experiment import Experiment, Purpose
from ldfi.experiments.domain.judging.judgement import INTERFERENCE, JudgingContext, judge
from ldfi.experiments.domain.judging.sequential_tests import MIN_FAILURES, Verdict
from ldfi.experiments.domain.judging.two_slots import Opening
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.baseline import Spell
from ldfi.fit.protocol.faults import Fault
from tests.experiments.domain.judging.test_experiment import FAULT, HOUR, seen, settled
from tests.experiments.simulated import BOOT

WORDS = st.none() | st.just("9 of 31 requests")
CONTEXTS = st.builds(JudgingContext, st.booleans(), WORDS, WORDS, WORDS)
VERDICTS: tuple[Verdict, ...] = ("harmful", "tolerated", "inconclusive")

Who = Literal["treated", "turned away", "control", "bystander"]
REQUESTS = st.lists(
    st.tuples(st.sampled_from(("treated", "turned away", "control", "bystander")), st.booleans()),
    max_size=80,
)
WELL: list[tuple[Who, bool]] = [("treated", True), ("control", True), ("bystander", True)]


@given(st.sampled_from(VERDICTS), CONTEXTS)
def test_nothing_is_harmful_that_tests_do_not_find(told: Verdict, context: JudgingContext) -> None:
    verdict = judge(told, "evidence", context).verdict
    assert verdict in {told, "inconclusive"}


def test_bystanders_alone_confirm_nothing_and_that_is_said() -> None:
    context = JudgingContext(fired=True, hurt="9 of 31 requests failed", silent=None, fallen=None)
    for told in ("tolerated", "inconclusive"):
        judged = judge(told, "evidence", context)
        assert judged.verdict == "inconclusive"
        assert judged.overruled == "bystanders"
        said = f"bystanders are hurt: 9 of 31 requests failed; this is {INTERFERENCE}"
        assert judged.reason == said
    both = judge("harmful", "evidence", context)
    assert both == ("harmful", "bystanders are hurt: 9 of 31 requests failed", None)


@given(
    REQUESTS,
    st.sampled_from(("explore", "confirm", "verify", "repeat", "recheck")),
    st.booleans(),
    st.none() | st.just(Opening(3.0, 0.001)),
)
@example([*WELL * 4, *[("bystander", False)] * 9], "confirm", True, Opening(3.0, 0.001))
@example([*WELL * 4, *[("bystander", False)] * 9], "verify", True, None)
@example([*WELL * 4, *[("turned away", False)] * 9], "explore", False, None)
@example([*WELL, *[("control", True), ("treated", False)] * 9], "confirm", True, None)
def test_harm_takes_treated_devices_that_failed_more_than_control(
    requests: list[tuple[Who, bool]], purpose: Purpose, confirm: bool, opening: Opening | None
) -> None:
    # Given an experiment of any purpose, and any outcomes of the treated, of control and of others
    settings = Settings(confirm=confirm, min_samples=4)
    experiment = Experiment(
        *("e1", "GET /", BOOT, frozenset({"error@a"}), (Fault(FAULT.point, "error"),), settings),
        purpose,
        opening=opening if purpose == "confirm" else None,
    )
    experiment.arm(0.0, 0.01)
    experiment.taken()
    experiment.bystanders = Bystanders(frozenset({"ratings"}))
    experiment.bystanders.note("GET /", Spell(0, 200))
    for number, (who, success) in enumerate(requests):
        if who == "bystander":
            experiment.bystanders.add("GET /", f"d{number}", success=success, reached=False)
            continue
        arm, fired = "control" if who == "control" else "treatment", who != "turned away"
        experiment.observe(seen(number, arm, success=success, fired=fired))  # type: ignore[arg-type]
    # When it is decided
    if not experiment.review(HOUR):
        return
    if experiment.bystanders.hurt is not None and experiment.state == "observing":
        experiment.stop("bystanders are hurt", HOUR)
    assert settled(experiment, HOUR)
    # Then it is harmful only where two of the treated failed, and the test of worse says so
    treated = experiment.arms["treatment"]
    if experiment.verdict == "harmful":
        assert treated.failures >= MIN_FAILURES
        assert experiment.tests.log_worse >= -math.log(experiment.alpha) - 1e-9
    # And what it teaches is no harm either
    assert (result_of(experiment, frozenset()).succeeded is False) == (
        experiment.verdict == "harmful"
    )
