from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.fit.protocol.faults import MAX_FIRST, Fault
from ldfi.fit.protocol.kinds import kind_of
from tests.fit.kinds import ANY_KIND, DRAWN

FAULTS = st.builds(Fault, st.text(min_size=1), ANY_KIND | DRAWN, st.integers(0, MAX_FIRST))


@given(FAULTS)
def test_faults_read_back(fault: Fault) -> None:
    assert Fault.parse(str(fault)) == fault


def test_a_fault_is_written_as_kind_and_point_and_says_how_many_calls_it_hits() -> None:
    assert str(Fault("api>cache:get:home", "error")) == "error@api>cache:get:home"
    assert str(Fault("api>cache:get:home", "delay", first=2)) == "delay:2@api>cache:get:home"
    assert str(Fault("a>http:GET:b/", "status:503", first=2)) == "status:503:2@a>http:GET:b/"


@pytest.mark.parametrize(
    "text",
    [
        *("exploded@p", "refused:x@p", "Refused@p", "status@p", "status:@p", "status:200@p"),
        *("status:600@p", "status:5e2@p", "status:503:0@p", "status:503:2:3@p", "grpc:GONE@p"),
        *("grpc:14@p", "sql:loading@p", "redis:deadlock@p", "exception@p", "exception:a-b@p"),
        *("exception:a.b@p", f"exception:{'x' * 41}@p", "@p", ":2@p", "", "error", "error@"),
        *("explode@a>http:GET:b/", "delay:..@p", "delay:2..1@p", "delay:1..1@p", "delay:0.50..2@p"),
        *("delay:01..2@p", "delay:0.5..2.0@p", "delay:1e0..2@p", "delay:1..10000@p"),
        *("delay:1..2:x@p", "delay:p50=0..p99=2@p", "delay:p50=3..p99=2@p", "delay:p50=1..2@p"),
        *("delay:nan..2@p", "delay:0@p", "delay:100@p", "delay:-1@p", "delay:@p"),
        *("delay:0.0001..2@p", "slow@p", "slow:@p", "slow:0@p", "slow:2.0@p", "slow:02@p"),
        *("slow:10000@p", "slow:2..1@p", "slow:2:0@p", "slow:2:100@p", "slow:-2@p", "slow:2s@p"),
        *("slow:0.0001@p", "error:@p", "error:0@p", "error:100@p", "error:-1@p", "error:x@p"),
        "error:1:2@p",
    ],
)
def test_what_is_no_fault_is_refused_with_the_value_shown(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a fault|not a kind of fault|no number of calls"):
        Fault.parse(text)


@pytest.mark.parametrize("first", [-1, MAX_FIRST + 1])
def test_a_fault_hits_a_number_of_calls_that_can_be_written_down(first: int) -> None:
    with pytest.raises(ValueError, match=str(first)):
        Fault("p", "error", first)


def test_a_number_after_a_kind_with_an_argument_is_its_argument_first() -> None:
    assert Fault.parse("status:503@p") == Fault("p", "status:503")
    assert Fault.parse("status:503:2@p") == Fault("p", "status:503", 2)
    assert Fault.parse("exception:n2@p") == Fault("p", "exception:n2")
    assert Fault.parse("refused:2@p") == Fault("p", "refused", 2)
    assert Fault.parse("delay:2@p") == Fault("p", "delay", 2)
    assert Fault.parse("delay:0.5..2@p") == Fault("p", "delay:0.5..2")
    assert Fault.parse("delay:0.5..2:2@p") == Fault("p", "delay:0.5..2", 2)
    assert Fault.parse("slow:2@p") == Fault("p", "slow:2")
    assert Fault.parse("slow:2:3@p") == Fault("p", "slow:2", 3)
    assert Fault.parse("slow:0.5..2:3@p") == Fault("p", "slow:0.5..2", 3)


@given(ANY_KIND | DRAWN)
def test_a_kind_reads_as_itself(kind: str) -> None:
    assert kind_of(kind) == kind


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("exploded", "the kinds are error, delay, refused"),
        ("status:99", "a status from 400 to 599"),
        ("grpc:GONE", "CANCELLED, UNKNOWN"),
        ("sql:full", "deadlock, serialization, lost, readonly"),
        ("refused:x", "refused stands alone"),
        ("delay:0.5,2", r"write seconds.*0\.5\.\.2 for any between the two"),
    ],
)
def test_what_could_stand_there_is_said(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        kind_of(text)
    with pytest.raises(ValueError, match=said if ":" not in text else "not a kind|no number"):
        Fault.parse(f"{text}@p")


def test_a_fault_cannot_be_of_no_kind() -> None:
    with pytest.raises(ValueError, match="not a kind of fault"):
        Fault("p", "exploded")
