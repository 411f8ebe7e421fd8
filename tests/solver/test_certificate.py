"""Certificates hold, and the checker sees when they do not."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ldfi.checker.solving import check
from ldfi.solver import Certificate, Explorer, InvalidRecord
from tests.solver.systems import System, explore, explorer_of, many, systems

STRATEGIES = ["smallest", "likeliest", "union"]


def explored(system: System, **options: Any) -> Explorer:
    explorer = explorer_of(system, **options)
    support = system.run(())
    if support is not None:
        explorer.observe(support, traces=["0af7651916cd43dd8448eb211c80319c"])
    explore(explorer, system, blame="right")
    return explorer


@many
@given(systems(rich=True), st.sampled_from(STRATEGIES), st.integers(1, 3))
def test_the_certificate_of_a_finished_exploration_is_accepted(
    system: System, strategy: str, max_size: int
) -> None:
    explorer = explored(system, strategy=strategy, max_size=max_size)
    certificate = explorer.certificate()
    assert check(json.loads(certificate.to_json())) == []
    assert certificate.complete
    assert Certificate.from_json(certificate.to_json()) == certificate


@given(systems(), st.integers(1, 3), st.integers(0, 8))
def test_the_certificate_of_an_unfinished_exploration_lists_what_is_open(
    system: System, max_size: int, steps: int
) -> None:
    explorer = Explorer(max_size=max_size)
    support = system.run(())
    assert support is not None
    explorer.observe(support)
    for _ in range(steps):
        proposal = explorer.propose()
        if proposal is None:
            break
        faults = frozenset(map(str, proposal))
        good = system.run(faults)
        explorer.record(injected=faults, succeeded=good is not None, support=good)
    certificate = explorer.certificate()
    assert check(json.loads(certificate.to_json())) == []
    # And every failing set within the bounds is a finding, or contains one, or something open
    known = [set(each) for each in (*certificate.findings, *certificate.data["open"])]
    for truth in system.minimal_failing_sets(max_size):
        assert any(each <= truth for each in known)


@given(systems(), st.integers(1, 3), st.sampled_from(STRATEGIES))
def test_the_lower_bound_is_one(system: System, max_size: int, strategy: str) -> None:
    explorer = explored(system, max_size=max_size, strategy=strategy)
    bound = explorer.certificate().data["lower_bound"]
    assert bound["failing"] == len(system.minimal_failing_sets(max_size))
    assert explorer.experiments >= bound["total"]


@given(systems(rich=True), st.data())
def test_a_certificate_without_one_of_its_runs_is_rejected_or_still_true(
    system: System, data: st.DataObject
) -> None:
    # Given a certificate from which one run is removed, and every trace of it
    explorer = explored(system, max_size=2)
    document = explorer.certificate().data
    assume(document["evidence"])
    corrupted = copy.deepcopy(document)
    removed = corrupted["evidence"].pop(data.draw(st.integers(0, len(document["evidence"]) - 1)))
    forget(corrupted, removed)
    # Then it is rejected, unless the other runs prove as much
    if not check(corrupted):
        rest = explorer_of(system, max_size=2)
        for run in corrupted["evidence"]:
            if run["origin"] == "observed":
                rest.observe(run["support"], failed=run["failed"])
            else:
                rest.record(
                    injected=run["injected"],
                    fired=run["failed"],
                    succeeded=run["good"],
                    support=run["support"],
                )
        assert rest.open_count() == 0, f"{removed} was needed"


def forget(document: dict[str, Any], removed: dict[str, Any]) -> None:
    """Number the other runs anew, wherever they are named, and count without this one."""

    def moved(number: Any) -> Any:
        if isinstance(number, list):
            return [moved(each) for each in number if each != removed["number"]] or 0
        return number - 1 if isinstance(number, int) and number > removed["number"] else number

    for run in document["evidence"]:
        run["number"] = moved(run["number"])
    proof = document["derivation"]
    proof["steps"] = [moved(step) for step in proof["steps"]]
    proof["larger"] = [moved(run) for run in proof["larger"]]
    for each in proof["minimal"]:
        each["run"] = moved(each["run"])
        each["needed"] = {fault: moved(run) for fault, run in each["needed"].items()}
    if removed["origin"] == "injected":
        document["experiments"] -= 1
        document["rechecks"]["tried"] -= removed["recheck"]
        total = document["lower_bound"]["total"]
        tried = document["experiments"] - document["rechecks"]["tried"]
        document["lower_bound"]["ratio"] = round(tried / total, 4) if total else None


def test_the_same_knowledge_is_written_alike_however_busy_the_machine_is() -> None:
    # Given two explorers that learned the same, one of which is given no time at all
    rng = random.Random(1)
    supports = [frozenset(map(str, rng.sample(range(30), 5))) for _ in range(12)]
    certificates = []
    for limit in (None, 1e-6):
        explorer = Explorer(max_size=7, time_limit=limit, deterministic=True)
        for support in supports:
            explorer.observe(support)
        certificates.append(explorer.certificate())
    # When both write what they know
    patient, hurried = certificates
    # Then they write the same
    assert len(patient.data["open"]) > 50
    assert hurried == patient


def test_a_wrong_document_is_no_certificate() -> None:
    assert check({}) != []
    with pytest.raises(ValueError, match="not a certificate"):
        Certificate.from_json("[]")


def test_rechecks_measure_whether_more_faults_never_help() -> None:
    # Given an exploration that is complete
    explorer = Explorer(max_size=2)
    explorer.observe({"a", "b", "c"})
    explorer.record(injected={"a", "b", "c"}, succeeded=True, support={"d"})
    while (proposal := explorer.propose()) is not None:
        explorer.record(injected=proposal, succeeded=True, support={"e"})
    # When sets that are inferred to be safe are tried nevertheless, and one of them fails
    first = explorer.recheck()
    assert first is not None
    explorer.record(injected=first, succeeded=True, support={"e"})
    second = explorer.recheck()
    assert second is not None
    explorer.record(injected=second, succeeded=False)
    # Then the certificate gives the rate, and says what contradicts the assumption
    certificate = explorer.certificate()
    assert certificate.data["rechecks"] == {"tried": 2, "violated": 1}
    assert len(certificate.data["violations"]) == 1


def test_faults_that_read_alike_are_refused() -> None:
    explorer = Explorer()
    explorer.observe({1, "1"})
    with pytest.raises(InvalidRecord, match="written"):
        explorer.certificate()
