"""A finding as a sentence, and what makes several of them one cause."""

from __future__ import annotations

from typing import Any

import pytest

from ldfi.analysis.repairs.advice import Advice, advise, sentence
from ldfi.analysis.repairs.owners import Owners
from ldfi.experiments.domain.campaign.lifecycle import FindingState
from ldfi.lineage.run_summary import Runs
from tests.analysis.repairs.runs import call, runs

TANK, SPARE = "pump>http:GET:tank/levels/*", "pump>http:GET:spare/levels/*"
LEVELS = "tank>db:SELECT:levelsdb/rows"


@pytest.mark.parametrize(
    ("treatment", "state", "said"),
    [
        ((4, 4), "open", "GET /home is lost when tank fails"),
        ((4, 2), "regressed", "GET /home fails more often when tank fails"),
        (None, "acknowledged", "GET /home is hurt when tank fails"),
        ((4, 4), "suspected", "GET /home may be lost when tank fails"),
        ((4, 4), "fixed", "GET /home was lost when tank fails"),
        ((4, 4), "refuted", "GET /home is not hurt when tank fails"),
    ],
)
def test_a_weakness_is_a_sentence(
    treatment: tuple[int, int] | None, state: FindingState, said: str
) -> None:
    counts: dict[str, Any] = (
        {"treatment": dict(zip(("devices", "failures"), treatment, strict=True))}
        if treatment
        else {}
    )
    assert sentence("GET /home", [f"error@{TANK}"], state, counts, {}) == said


def of(faults: list[str], seen: Runs, owners: str = "") -> Advice:
    return advise("GET /a", faults, "open", {}, seen, {}, Owners.parse(owners))


def test_what_comes_through_the_same_calls_has_one_cause() -> None:
    whole = of([f"error@{TANK}"], runs([call(TANK, failed=True, fired="error", callee="tank")]))
    deep = of(
        [f"error@{LEVELS}"],
        runs([call(TANK, failed=True, callee="tank"),
              call(LEVELS, within=0, failed=True, fired="error")]),
    )  # fmt: skip
    other = of([f"error@{SPARE}"], runs([call(SPARE, failed=True, fired="error")]))
    assert whole.cause.points == deep.cause.points != other.cause.points
    assert (deep.cause.name, deep.cause.why) == ("tank", "Nothing stands in for tank.")


def test_a_system_that_is_down_names_its_cause() -> None:
    both = [call(TANK, failed=True, fired="error"), call(SPARE, failed=True, fired="error")]
    assert of(["down@levelsdb"], runs(both)).cause.name == "levelsdb"
    assert of(["down@levelsdb"], Runs()).cause.name == "levelsdb"


def test_it_belongs_to_whoever_has_to_change_something() -> None:
    deep = runs([call(TANK, failed=True, callee="tank"),
                 call(LEVELS, within=0, failed=True, fired="error")])  # fmt: skip
    assert of([f"error@{LEVELS}"], deep, "pump @pumps\ntank @tanks").owners == ("@pumps",)
    assert of([f"error@{LEVELS}"], deep, "pump>http:*:tank/* @tanks").owners == ("@tanks",)
    assert of([f"error@{LEVELS}"], deep).owners == ()
