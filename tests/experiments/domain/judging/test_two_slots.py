"""One proof over two slots: neither is enough, and together they are as much as one."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.judging.two_slots import SLOT, Opening, alpha

LEVELS = st.floats(1e-9, 1e-3)


@given(LEVELS, st.floats(-math.log(SLOT), 60.0))
def test_two_slots_convict_with_evidence_of_their_level(level: float, opening: float) -> None:
    second = alpha(1e-3, confirms=True, opening=Opening(opening, level))
    assert second <= SLOT  # by itself, too
    # evidence that just reaches the second threshold
    assert opening - math.log(second) >= -math.log(level) - 1e-9


@given(LEVELS)
def test_the_first_slot_convicts_nobody_and_needs_as_little_as_the_second(level: float) -> None:
    assert alpha(level, confirms=False, opening=None) == SLOT


def test_a_confirmation_of_which_no_first_slot_is_known_proves_it_all_by_itself() -> None:
    assert alpha(1e-3, confirms=True, opening=None) == 1e-3


def test_strong_evidence_in_the_first_slot_does_not_spare_the_second() -> None:
    weak = alpha(1e-3, confirms=True, opening=Opening(math.log(25), 1e-4))
    assert weak == pytest.approx(25e-4)
    assert alpha(1e-3, confirms=True, opening=Opening(math.log(1e9), 1e-4)) == SLOT
