"""A failure that nobody injected names suspects, and each is tried by itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ldfi.solver import Explorer
from tests.solver.systems import Set, System, explore, systems


def test_who_is_suspected_by_nature_is_tried_first_and_not_believed() -> None:
    explorer = Explorer()
    explorer.observe({"a", "b", "c"})
    explorer.suspect({"b"}, {"b", "c"})
    # Nothing is found until an experiment has shown it
    assert not explorer.findings
    assert explorer.propose() == frozenset({"b"})
    explorer.record(injected={"b"}, succeeded=True, support={"a", "c"})
    assert explorer.propose() != frozenset({"b"})


@given(systems(), st.lists(st.frozensets(st.sampled_from("abcdefg"), min_size=1), max_size=3))
def test_right_or_wrong_they_change_nothing_but_the_effort(
    system: System, suspected: list[Set]
) -> None:
    explorer = Explorer(system.points, max_size=2)
    support = system.run(())
    assert support is not None
    explorer.observe(support)
    for each in suspected:
        explorer.suspect(each & set(system.points), each & set(system.points))
    explore(explorer, system)
    assert set(explorer.findings) == system.minimal_failing_sets(2)


def test_what_a_failure_named_is_not_taken_apart() -> None:
    # Given a pair that hurts among many faults, and failures that name it
    points = {f"p{number:02}" for number in range(60)}
    pair = frozenset({"p10", "p50"})
    explorer = Explorer(max_size=2)
    explorer.observe(points)
    sizes = []
    while (faults := explorer.propose()) is not None:
        hurts = pair <= faults
        support = None if hurts else points - set(faults)
        blame = pair if hurts else None
        explorer.record(injected=faults, succeeded=not hurts, support=support, blame=blame)
        sizes.append(len(faults))
    # Then two unions show that either half of it is survived, and that all else is
    assert sizes == [60, 2, 59, 59]
    assert explorer.findings == (pair,)
    assert explorer.certificate().complete


@given(systems(), st.data())
def test_failures_that_name_too_much_hide_nothing(system: System, data: st.DataObject) -> None:
    explorer = Explorer(system.points, max_size=2)
    support = system.run(())
    assert support is not None
    explorer.observe(support)
    while (proposal := explorer.propose()) is not None:
        faults = frozenset(map(str, proposal))
        support = system.run(faults)
        blame = None if support is not None else data.draw(st.sets(st.sampled_from(sorted(faults))))
        explorer.record(
            injected=faults, succeeded=support is not None, support=support, blame=blame
        )
    assert set(explorer.findings) == system.minimal_failing_sets(2)
