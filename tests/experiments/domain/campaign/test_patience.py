"""A fault holds for as long as its caller asks: who outlasts the failure context proves nothing for
*tolerated*, and the class's contexts hold for longer from then on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.campaign.result import ExperimentResult
from ldfi.experiments.domain.campaign.snapshot import Snapshot
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.settings import MAX_PATIENCE, Settings
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.rules import MAX_PATIENCE_SECONDS
from ldfi.testing.programs import Call, Step
from ldfi.testing.spans import lineage, span
from tests.experiments.simulated import Application, explore_application, serving

HOLDS = 4.0
"""Seconds for which a context is sure to hold under a usual lease."""
QUOTES = frozenset({"error@quotes"})
LATE = lineage(span("root", kind="server"), span("quotes", "root", expired="true")).trace
SETTINGS = Settings(kinds=("error",), min_traffic=50, rechecks=0)


class Asking(Application):
    """Asks ``quotes`` again after each of these waits (seconds), until it answers; when it never
    does the request is lost, unless ``spare`` stands in at last."""

    def __init__(
        self, waits: Sequence[float], *, spare: bool = False, marked: bool = False
    ) -> None:
        mode = "optional" if spare else "critical"
        super().__init__(serving(Call("root", (Step(mode, (Call("quotes"),)),))))
        self._waits = waits
        self._spare = spare
        self._marked = marked

    def request(self, experiment: Experiment | None = None, arm: Arm = "treatment") -> Observation:
        """Ask; by the time the context has run out quotes answers."""
        seen = super().request(experiment, arm)
        if experiment is None or arm == "control":
            return seen
        holds = max(HOLDS, experiment.settings.patience or 0.0)
        experiment.holds = 1e9 if self._marked else holds  # then the call itself says so
        tries = [sum(self._waits[:each]) for each in range(len(self._waits) + 1)]
        answered = next((each for each in tries if each >= holds), None)
        run = replace(seen.lineage, duration=tries[-1] if answered is None else answered)
        if answered is not None and self._marked:
            run = replace(run, trace=LATE)
        good = self._spare or answered is not None
        return Observation(run, replace(seen.outcome, success=good))


def verdicts(campaign: Campaign) -> list[bool | None]:
    return [each.succeeded for each in campaign.explorations["GET /"].knowledge.results]


CALLERS = [(4, 4, 4, 8), (14, 14, 14), (1,) * 30, (30, 30), (5,), (0.2, 0.4, 60)]


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("waits", CALLERS, ids=str)
def test_a_caller_that_asks_again_is_no_fallback(waits: tuple[float, ...], marked: bool) -> None:
    campaign = explore_application(Asking(waits, marked=marked), SETTINGS)
    assert True not in verdicts(campaign)
    assert campaign.explorations["GET /"].states == {QUOTES: "open"}


@pytest.mark.parametrize("waits", CALLERS, ids=str)
def test_one_that_has_something_else_in_the_end_is_certified(waits: tuple[float, ...]) -> None:
    campaign = explore_application(Asking(waits, spare=True), SETTINGS)
    assert campaign.explorations["GET /"].states == {}
    assert campaign.explorations["GET /"].knowledge.open == 0


@pytest.mark.parametrize(
    ("settings", "waits"),
    [
        (SETTINGS, (100.0, 100.0)),
        (replace(SETTINGS, patience=10.0), (4.0, 4.0, 4.0, 8.0)),
    ],
    ids=["longer than any context may", "a limit was given"],
)
def test_what_cannot_be_held_stays_open_and_says_why(
    settings: Settings, waits: tuple[float, ...]
) -> None:
    campaign = explore_application(Asking(waits), settings)
    assert set(verdicts(campaign)) <= {None}
    assert "went on after their failure context may have run out" in campaign.reason


@given(st.lists(st.floats(0.5, 300), min_size=1, max_size=6))
def test_contexts_grow_to_what_was_seen_and_no_further(lasted: list[float]) -> None:
    """And late devices are waited for by so much longer."""
    campaign = explore_application(Asking(()), SETTINGS)
    exploration = campaign.explorations["GET /"]
    for each in lasted:
        exploration.learn(ExperimentResult(QUOTES, succeeded=None, outlasted=each))
    held = exploration.settings.patience or 0.0
    assert min(2 * max(lasted), MAX_PATIENCE_SECONDS) <= held <= MAX_PATIENCE_SECONDS
    assert exploration.settings.settle == SETTINGS.settle + held
    assert MAX_PATIENCE == MAX_PATIENCE_SECONDS, "edges refuse a rule that asks for more"
    assert Snapshot.from_json(exploration.snapshot().to_json()).patience == held
