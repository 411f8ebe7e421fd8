"""Graphs: who is called within whom, what part each point plays, and what differs in a bad run."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from ldfi.dashboards.lineage_graph import COLLAPSE_ABOVE, class_graph, difference, standings_of
from ldfi.dashboards.roles import ROLES, roles_of
from ldfi.dashboards.run_tree import Branch, side_by_side
from ldfi.experiments.domain.campaign.recording import run_of
from ldfi.experiments.domain.settings import Settings
from ldfi.lineage.run_summary import Run, RunCall
from ldfi.testing.programs import Call, Step
from tests.experiments.simulated import Application, explore, serving, traffic_of

INNER = Call("playlist>db:SELECT:lists/rows")
PLAYLIST = Call("api>http:GET:playlist/members", (Step("critical", (INNER,)),))
POPULAR = Call("api>http:GET:popular/top")
LAYOUT = Call("api>http:GET:layout/screens")
RATINGS = Call("api>http:GET:ratings/titles")
PROGRAM = Call(
    "root",
    (
        Step("optional", (RATINGS,)),
        Step("fallback", (PLAYLIST, POPULAR)),
        Step("critical", (LAYOUT,)),
    ),
)
SETTINGS = Settings(kinds=("error",), min_traffic=50, apart=0.0)


def test_every_role_is_told_from_the_evidence() -> None:
    campaign = explore(serving(PROGRAM), SETTINGS)

    roles = roles_of(campaign.explorations["GET /"].knowledge)

    assert roles == {
        LAYOUT.point: "critical",
        RATINGS.point: "optional",
        PLAYLIST.point: "optional",
        INNER.point: "optional",
        POPULAR.point: "fallback",
    }


def test_before_anything_was_tried_nothing_is_known() -> None:
    traffic = traffic_of(Application(serving(PROGRAM)), 50)
    graph = class_graph(traffic, dict.fromkeys([LAYOUT.point, PLAYLIST.point], "untested"))

    assert {node.standing for node in graph.nodes} == {"untested"}
    assert [node.share for node in graph.nodes] == [1.0, 1.0]
    assert set(ROLES) == {"critical", "optional", "fallback", "untested"}


def test_a_class_is_drawn_as_its_requests_go() -> None:
    campaign = explore(serving(PROGRAM), SETTINGS)
    exploration = campaign.explorations["GET /"]
    roles = roles_of(exploration.knowledge)
    lineage, _ = Application(serving(PROGRAM))._run(frozenset({f"error@{PLAYLIST.point}"}))
    exploration.knowledge.traffic.topology.learn(
        lineage
    )  # as a campaign does with what it observes

    graph = class_graph(exploration.knowledge.traffic, roles, [f"error@{LAYOUT.point}"])

    assert {(edge.above, edge.below) for edge in graph.edges} == {
        (None, LAYOUT.point),
        (None, RATINGS.point),
        (None, PLAYLIST.point),
        (None, POPULAR.point),
        (PLAYLIST.point, INNER.point),
    }
    assert [*graph.services] == ["api", "playlist"]
    shares = {node.point: node.share for node in graph.nodes}
    assert shares[LAYOUT.point] == 1.0
    assert shares[POPULAR.point] == 0.0  # only experiments have seen it
    assert [node.point for node in graph.nodes if node.marks] == [LAYOUT.point]

    data = json.loads(json.dumps(graph.to_json()))
    assert data["collapse"] is (len(graph.nodes) > COLLAPSE_ABOVE)
    ids = {each["id"] for each in data["points"]} | {"request"}
    assert all({above, below} <= ids for above, below in data["edges"])
    assert {each["name"]: each["standing"] for each in data["services"]} == {
        "api": "critical",
        "playlist": "optional",
    }


def test_a_system_that_is_down_is_marked_at_each_of_its_points() -> None:
    one, other = Call("a>db:SELECT:records/x"), Call("a>db:SELECT:records/y")
    program = Call("root", (Step("optional", (one,)), Step("optional", (other,))))
    traffic = traffic_of(Application(serving(program)), 50)
    traffic.topology.callees.update({one.point: "records", other.point: "records"})

    graph = class_graph(
        traffic, dict.fromkeys([one.point, other.point], "untested"), ["down@records"]
    )

    assert {node.point: node.marks for node in graph.nodes} == {
        one.point: ("down",),
        other.point: ("down",),
    }


def runs(*faults: str) -> tuple[Run, Run]:
    """A run without faults, and one with these."""
    spans = Application(serving(PROGRAM))
    good = run_of(spans.request())
    lineage, succeeded = spans._run(frozenset(faults))
    observation = spans.request()
    bad = run_of(
        type(observation)(
            lineage,
            type(observation.outcome)(lineage.trace_id, "d", "", succeeded, error_code="E42"),
        )
    )
    return good, bad


def test_what_became_of_each_point_in_the_bad_run() -> None:
    good, bad = runs(f"error@{INNER.point}", f"error@{LAYOUT.point}")

    assert standings_of(good, bad) == {
        RATINGS.point: "same",
        PLAYLIST.point: "failed",
        INNER.point: "injected",
        POPULAR.point: "stood-in",
        LAYOUT.point: "injected",
    }
    assert not bad.success


def test_what_the_bad_run_never_reached_is_marked_in_the_good_one() -> None:
    good, bad = runs(f"error@{PLAYLIST.point}")

    beside = side_by_side(good, bad)

    assert marks(beside.good)[INNER.point] == "only in this run"
    assert marks(beside.bad)[PLAYLIST.point] == "made to fail"
    assert marks(beside.bad)[POPULAR.point] == "stood in"
    assert marks(beside.bad)[RATINGS.point] == ""
    assert INNER.point not in marks(beside.bad)


def marks(branches: list[Branch]) -> dict[str, str]:
    found = {}
    for each in branches:
        found[each.point] = each.mark
        found |= marks(each.below)
    return found


def test_both_runs_make_one_graph() -> None:
    graph = difference(*runs(f"error@{PLAYLIST.point}"))

    assert {(edge.above, edge.below) for edge in graph.edges} >= {
        (None, PLAYLIST.point),
        (PLAYLIST.point, INNER.point),
        (None, POPULAR.point),
    }
    standings = {node.point: node.standing for node in graph.nodes}
    assert standings[INNER.point] == "not-reached"


@st.composite
def any_run(draw: st.DrawFn) -> Run:
    calls: list[RunCall] = []
    for _ in range(draw(st.integers(0, 12))):
        within = draw(st.none() | st.integers(0, len(calls) - 1)) if calls else None
        point = draw(st.sampled_from(["a>function:f", "a>function:g", "b>function:f", "<b>"]))
        fired = draw(st.sampled_from([(), ("error",), ("delay",)]))
        calls.append(RunCall(point, "", within, draw(st.booleans()), fired, 0.0, 0.0))
    return Run("0" * 32, draw(st.booleans()), None, 0.1, tuple(calls))


@given(any_run(), any_run())
def test_nothing_is_lost_between_two_runs(good: Run, bad: Run) -> None:
    """Each point of either is in the picture once, each call of either in its tree once."""
    graph, beside = difference(good, bad), side_by_side(good, bad)

    points = {call.point for run in (good, bad) for call in run.calls}
    assert sorted(node.point for node in graph.nodes) == sorted(points)
    for run, tree in ((good, beside.good), (bad, beside.bad)):
        assert counted(tree) == len(run.calls)
    injected = {call.point for call in bad.calls if call.fired}
    assert {node.point for node in graph.nodes if node.standing == "injected"} == injected
    json.dumps(graph.to_json())


def counted(branches: list[Branch]) -> int:
    return sum(each.count + counted(each.below) for each in branches)
