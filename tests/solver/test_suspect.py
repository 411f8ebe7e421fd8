"""A failure that nobody injected names suspects, and each is tried by itself."""

from __future__ import annotations

from hypothesis import given, settings
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


@settings(max_examples=100, deadline=None)
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
