"""A delay whose length was drawn is known by what it was drawn by."""

from __future__ import annotations

from dataclasses import replace

from ldfi.fit.protocol.faults import Fault
from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.requested_faults import as_asked
from ldfi.lineage.span import Trace
from ldfi.testing.programs import Call, Run, Step

DRAWN = "delay:p50=2..p99=3"
PROGRAM = Call(
    "root",
    (
        Step("optional", (Call("a", impatient=True),)),
        Step("optional", (Call("b", impatient=True),)),
        Step("optional", (Call("c"),)),
    ),
)


def lineage(*faults: str) -> Lineage:
    run = Run(frozenset(faults)).execute(PROGRAM)
    learned = learn(Trace.of("t", [each._replace(trace_id="t") for each in run.spans]))
    assert learned is not None
    return learned


def test_what_was_drawn_is_named_and_nothing_else() -> None:
    faults = [Fault("a", DRAWN), Fault("b", "delay"), Fault("c", "error")]
    shown = lineage(*map(str, faults))
    assert shown.fired == {"delay@a", "delay@b", "error@c"}
    assert shown.timed_out == {"a", "b"}

    asked = as_asked(shown, faults)

    assert asked.fired == {f"{DRAWN}@a", "delay@b", "error@c"}
    assert asked.timed_out == {"b"}, "the next length may be within the caller's patience"
    assert asked.relied_on == shown.relied_on
    assert asked.survived == shown.survived
    assert as_asked(asked, faults) == asked


def test_a_run_in_which_nothing_was_drawn_is_what_it_was() -> None:
    faults = [Fault("a", "delay"), Fault("c", "error")]
    shown = lineage(*map(str, faults))
    assert as_asked(shown, faults) is shown


def test_a_body_that_was_slow_is_named_by_its_length() -> None:
    run = replace(lineage(), fired=frozenset({"slow@a", "delay@b", "error@c"}))
    faults = [Fault("a", "slow:2"), Fault("b", "delay"), Fault("c", "error")]

    assert as_asked(run, faults).fired == {"slow:2@a", "delay@b", "error@c"}
