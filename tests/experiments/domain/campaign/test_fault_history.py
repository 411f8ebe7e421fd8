"""What experience says of a fault before it is tried."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.campaign.fault_history import Experience
from ldfi.experiments.domain.campaign.result import ExperimentResult
from ldfi.experiments.domain.settings import Settings
from ldfi.testing.world import FOUND, PROGRAM
from tests.experiments.simulated import explore, serving

FAULT, OTHER = "error@a", "error@b"


def tried(succeeded: bool | None, *faults: str) -> ExperimentResult:
    return ExperimentResult(frozenset(faults), succeeded=succeeded, fired=frozenset(faults))


@given(st.lists(st.booleans(), max_size=20))
def test_the_more_often_it_hurt_the_likelier_it_is(past: list[bool]) -> None:
    experience, worse = Experience(), Experience()
    for succeeded in past:
        experience.add(tried(succeeded, FAULT))
        worse.add(tried(succeeded, FAULT))
    worse.add(tried(False, FAULT))
    experience.add(tried(True, FAULT))

    assert 0 < experience.likelihood(FAULT) < worse.likelihood(FAULT) < 1
    assert experience.likelihood(OTHER) == Experience().likelihood(FAULT)


def test_a_harmful_union_says_nothing_of_its_parts_and_a_tolerated_one_does() -> None:
    experience = Experience()
    experience.add(tried(False, FAULT, OTHER))
    experience.add(tried(None, FAULT))
    assert experience.likelihood(FAULT) == Experience().likelihood(FAULT)

    experience.add(tried(True, FAULT, OTHER))
    assert experience.likelihood(FAULT) < Experience().likelihood(FAULT)


def test_more_faults_are_a_larger_risk_but_never_to_more_than_all() -> None:
    experience = Experience()
    one, two = experience.risk([FAULT], 100), experience.risk([FAULT, OTHER], 100)
    assert 0 < one < two < 100


def test_likeliest_explores_to_the_same_end() -> None:
    settings = Settings(kinds=("error",), strategy="likeliest", min_traffic=5)
    (exploration,) = explore(serving(PROGRAM), settings).explorations.values()
    assert {tuple(sorted(faults)) for faults, _ in exploration.knowledge.findings()} == FOUND
