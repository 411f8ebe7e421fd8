from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.fit.faults import MAX_FIRST, Fault
from ldfi.kinds import KINDS

FAULTS = st.builds(Fault, st.text(min_size=1), st.sampled_from(KINDS), st.integers(0, MAX_FIRST))


@given(FAULTS)
def test_faults_read_back(fault: Fault) -> None:
    assert Fault.parse(str(fault)) == fault


def test_a_fault_is_written_as_kind_and_point_and_says_how_many_calls_it_hits() -> None:
    assert str(Fault("api>cache:get:home", "error")) == "error@api>cache:get:home"
    assert str(Fault("api>cache:get:home", "delay", first=2)) == "delay:2@api>cache:get:home"


@pytest.mark.parametrize(
    "text",
    [
        *("", "error", "error@", "explode@a>http:GET:b/"),
        *("error:@p", "error:0@p", "error:100@p", "error:-1@p", "error:x@p", "error:1:2@p"),
    ],
)
def test_what_is_no_fault_is_refused_with_the_value_shown(text: str) -> None:
    with pytest.raises(ValueError, match=r"no fault|no kind of fault|no number of calls"):
        Fault.parse(text)


@pytest.mark.parametrize("first", [-1, MAX_FIRST + 1])
def test_a_fault_hits_a_number_of_calls_that_can_be_written_down(first: int) -> None:
    with pytest.raises(ValueError, match=str(first)):
        Fault("p", "error", first)
