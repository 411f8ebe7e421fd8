"""Kinds that somebody assumes to be alike: chosen, on the certificate, and tried by lot."""

from __future__ import annotations

import pytest

from ldfi.checker.solving import check, examine
from ldfi.experiments.domain.campaign.kinds import Kinds
from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.campaign.result import ExperimentResult
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.fit.protocol.kinds import alike_of
from ldfi.testing.spans import lineage, span
from tests.experiments.domain.campaign.test_exploration import harm, tolerated
from tests.kit.observations import observation

POINTS = [f"api>http:GET:{name}/" for name in ("ratings", "layout", "search")]
ASKED = ("status:500", "status:502", "refused")
SETTINGS = Settings(max_size=1, kinds=ASKED, alike=("5xx",), each_kind=True)


def known(*results: ExperimentResult, settings: Settings = SETTINGS) -> Knowledge:
    run, traffic = lineage(span("", kind="server"), *(span(p, "") for p in POINTS)), Traffic()
    for _ in range(20):
        traffic.observe(observation(run), now=0.0)
    found = Knowledge("GET /", settings, traffic)
    for each in results:
        found.learn(each)
    return found


def survived(*kinds: str, purpose: str = "explore") -> ExperimentResult:
    """One request in which the first points failed, each in its way."""
    faults = frozenset(f"{kind}@{point}" for kind, point in zip(kinds, POINTS, strict=False))
    relied_on = (f"{kind}@{p}" for p in POINTS for kind in ("error", "delay"))
    return tolerated(faults, relied_on, POINTS, survived=faults, purpose=purpose)


def open_kinds(knowledge: Knowledge, point: str = POINTS[0]) -> set[str]:
    judge = knowledge.solver_input.explorer.judge
    return {kind for kind in ASKED if judge({f"{kind}@{point}"}) == "open"}


def test_what_survives_one_status_is_taken_to_survive_those_that_are_alike() -> None:
    assert open_kinds(known(survived("status:500"))) == {"refused"}
    alone = Settings(max_size=1, kinds=ASKED)
    assert open_kinds(known(survived("status:500"), settings=alone)) == {"refused", "status:502"}


def test_the_assumption_stands_on_the_certificate() -> None:
    document = known(survived("status:500")).certificate()["certificate"]
    assert check(document) == []
    pairs = examine(document).assumed["alike"]
    assert f"status:500@{POINTS[0]} and status:502@{POINTS[0]}" in pairs
    without = known(settings=Settings(kinds=ASKED)).certificate()["certificate"]
    assert "alike" not in examine(without).assumed


def test_it_is_tried_by_lot() -> None:
    knowledge = known(survived("status:500", "status:500", "status:500"))
    drawn = knowledge.recheck()
    assert drawn is not None and {f.partition("@")[0] for f in drawn} == {"status:502"}


def test_it_falls_where_one_hurts_and_the_other_does_not() -> None:
    knowledge = known(
        survived("status:500", "status:500"), harm(frozenset({f"status:502@{POINTS[0]}"}))
    )

    judge = knowledge.solver_input.explorer.judge
    assert judge({f"status:500@{POINTS[0]}"}) == "safe"
    assert judge({f"status:502@{POINTS[0]}"}) == "failing"
    assert judge({f"status:502@{POINTS[1]}"}) == "safe"  # it stands elsewhere
    document = knowledge.certificate()["certificate"]
    assert check(document) == [] and not document["violations"]
    assert not any(POINTS[0] in each for each in examine(document).assumed["alike"])


def test_what_hurts_in_one_way_hurts_in_those_that_are_alike() -> None:
    knowledge = known(harm(frozenset({f"status:500@{POINTS[0]}"})))
    assert open_kinds(knowledge) == {"refused"}
    assert len(knowledge.solver_input.explorer.findings) == 1


@pytest.mark.parametrize("text", ["", "refused", "6xx", "delay+refused", "refused+teapot"])
def test_what_takes_nothing_as_alike_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        alike_of(text)
    with pytest.raises(ValueError, match="alike"):
        Settings(alike=(text,))


def test_old_records_take_nothing_as_alike() -> None:
    assert Settings.from_json({"max_size": 1}).alike == ()
    assert Settings.from_json(SETTINGS.to_json()) == SETTINGS
    assert Kinds(ASKED).alike_at(POINTS[0]) == []
