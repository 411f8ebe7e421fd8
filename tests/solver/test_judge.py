"""What the explorer says of a set that nobody asked it to try."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from ldfi.solver import Explorer
from tests.solver.systems import System, explore, systems


@given(systems(), st.sampled_from(["smallest", "union"]), st.integers(0, 10), st.integers(0, 3))
def test_a_judgement_is_never_wrong_and_at_the_end_none_is_missing(
    system: System, strategy: str, limit: int, seed: int
) -> None:
    # Given an exploration that was broken off after some experiments
    explorer = Explorer(system.points, max_size=2, strategy=strategy, seed=seed)
    support = system.run(())
    assert support is not None
    explorer.observe(support)
    pairs = [
        frozenset(each) for size in (1, 2) for each in itertools.combinations(system.points, size)
    ]
    for _ in range(limit):
        proposal = explorer.propose()
        if proposal is None:
            break
        faults = frozenset(map(str, proposal))
        support = system.run(faults)
        explorer.record(injected=faults, succeeded=support is not None, support=support)
    # Then whatever it claims of any set is the truth
    for faults in pairs:
        judgement = explorer.judge(faults)
        assert judgement == "open" or (judgement == "failing") is system.fails(faults)
    # And once it has come to its end, it knows of every set within its bounds
    explore(explorer, system)
    for faults in pairs:
        assert explorer.judge(faults) == ("failing" if system.fails(faults) else "safe")
