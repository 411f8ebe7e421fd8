"""What a run says it leaves open, against brute force; and that it is the same after a restart."""

from __future__ import annotations

import json
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.campaign.ending import COMPLETE, Ending, LeftOpen
from ldfi.experiments.domain.settings import Settings
from ldfi.lineage.span import Span
from ldfi.testing.programs import Call, Run, points_of
from tests.experiments.domain.campaign.test_campaign import found_by
from tests.experiments.simulated import explore, failing_sets, working

Faults = frozenset[str]


def deaf(program: Call, silent: Faults) -> tuple[list[Span], bool]:
    """Make a program at some points of which nobody can inject."""

    def serve(faults: Faults) -> tuple[list[Span], bool]:
        run = Run(frozenset(f for f in faults if f.partition("@")[2] not in silent))
        run.execute(program)
        return run.spans, run.good

    return serve  # type: ignore[return-value]


@given(working(points=5), st.data(), st.integers(0, 3), st.sampled_from([None, 1, 3]))
def test_what_nobody_can_inject_is_said_and_hides_nothing_else(
    program: Call, data: st.DataObject, seed: int, cap: int | None
) -> None:
    # Given a program at some points of which nobody can inject
    points = points_of(program)
    silent = frozenset(data.draw(st.sets(st.sampled_from(points))))
    # When a campaign over errors has nothing left to try
    bounds = Settings(kinds=("error",), seed=seed, max_union=cap, min_traffic=5)
    campaign = explore(deaf(program, silent), bounds)  # type: ignore[arg-type]
    # Then it has found what there is at the other points
    audible = [f"error@{point}" for point in points if point not in silent]
    assert found_by(campaign) == failing_sets(program, audible, 2)
    # And it says that it is done only where what cannot be injected makes no difference
    assert campaign.ending is not None
    everything = failing_sets(program, [f"error@{point}" for point in points], 2)
    if everything != found_by(campaign):
        assert campaign.ending.kind == "open"
    # And it names no point in vain
    named = {point for each in campaign.ending.left for point in each.silent}
    assert named <= silent
    if not named:
        assert campaign.ending == Ending()


reasons: st.SearchStrategy[Mapping[str, int]] = st.dictionaries(
    st.sampled_from(["window over", "no fault fired", "not tried"]), st.integers(1, 9)
)
lefts = st.builds(
    LeftOpen,
    request_class=st.text(),
    why=reasons,
    named=st.lists(st.lists(st.text()).map(tuple)).map(tuple),
    silent=st.lists(st.text()).map(tuple),
)
endings = st.builds(
    Ending,
    st.sampled_from(["complete", "open", "out of time", "out of budget"]),
    st.lists(lefts).map(tuple),
    st.lists(st.text()).map(tuple),
)


@given(endings)
def test_an_ending_is_the_same_after_it_was_on_record(ending: Ending) -> None:
    assert Ending.from_json(json.loads(json.dumps(ending.to_json()))) == ending
    assert (ending.reason == COMPLETE) == (ending.kind == "complete")


def test_a_record_from_before_says_nothing() -> None:
    assert Ending.from_json(None) is None


def test_many_are_counted_and_some_named() -> None:
    left = LeftOpen("GET /", {"window over": 2, "not tried": 1}, silent=tuple("abcdefg"))
    assert left.count == 3
    said = "3 hypotheses stay open (not tried: 1, window over: 2); nothing ever fired at a, b, c, "
    said += "d, e and 2 more"
    assert left.words == said
    held = "which was not tried again; held since their lineage changed: GET /x"
    whole = f"not everything is decided: {said}, {held}"
    assert Ending("open", (left,), ("GET /x",)).reason == whole
