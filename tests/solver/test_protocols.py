"""Protocols with known minimal counterexamples: exactly those, in few executions."""

from __future__ import annotations

import pytest

from ldfi.checker.solving import check
from tests.solver.protocols.catalogue import CATALOGUE, Known
from tests.solver.protocols.model import Setting
from tests.solver.protocols.suite import exhaustive, explore
from tests.solver.protocols.three_phase import ThreePhaseCommit


@pytest.mark.parametrize("known", CATALOGUE, ids=lambda known: known.name)
def test_exactly_the_known_counterexamples_are_found(known: Known) -> None:
    # When the protocol is explored to the end of its bounds
    result = explore(known.setting, max_size=known.max_size)
    # Then the answer is the known one, in no more executions than others needed
    assert result.counterexamples == known.counterexamples
    if known.first is not None:
        assert result.to_first is not None
        assert result.to_first <= known.first
    if known.all is not None:
        assert result.executions <= known.all
    # And its certificates hold
    for certificate in result.certificates:
        assert certificate.complete
        assert check(certificate.data) == []


SMALL = [
    known
    for known in CATALOGUE
    if len(known.setting.omissions) + len(known.setting.crash_faults) < 40
]


@pytest.mark.parametrize("known", SMALL, ids=lambda known: known.name)
def test_exhaustive_search_agrees(known: Known) -> None:
    found, _ = exhaustive(known.setting, 2)
    assert found == {each for each in known.counterexamples if len(each) <= 2}


def test_more_faults_may_help_in_three_phase_commit() -> None:
    # Given one lost acknowledgement and one lost abort, which let nodes decide apart
    setting = Setting(ThreePhaseCommit, 9, 7, 1)
    split = frozenset({"O(a,C,4)", "O(C,b,6)"})
    assert setting.violates(split)
    # Then a crash before anything was announced keeps them together
    assert not setting.violates(split | {"C(C,2)"})
