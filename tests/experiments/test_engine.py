"""The engine, from spans and outcomes to findings, on a clock of our own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.domain.observation import Outcome
from experiments.domain.settings import Settings
from experiments.engine import Engine
from experiments.errors import Conflict, Halted, NotFound
from experiments.store import Store
from fit.rules import Lease, read_lease
from lineage.span import Span
from tests.lineage.programs import Call, Run, Step
from tests.lineage.spans import span

PROGRAM = Call(
    "root",
    (
        Step("optional", (Call("ratings"),)),
        Step("fallback", (Call("playlist"), Call("popular"))),
        Step("critical", (Call("layout"),)),
    ),
)
BOOT = {"method": "GET", "url": "http://api/boot"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(f"sqlite:///{tmp_path / 'x.sqlite3'}")
    yield store
    store.close()


class World:
    """Devices, an edge and services: everything around the engine, in simulated time."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.now = 1000.0
        self._ids = itertools.count(1)

    def step(self, requests: int = 40) -> None:
        """A second of traffic."""
        lease = read_lease(self.engine.board.lease(), self.now)
        for _ in range(requests):
            self._request(lease)
        self.now += 1.0
        self.engine.tick(self.now)

    def _request(self, lease: Lease) -> None:
        number = next(self._ids)
        device, trace_id = f"d{number}", f"{number:032x}"
        allocated = lease.allocate({"method": "GET", "path": "/boot"}, device)
        faults: frozenset[str] = frozenset()
        marks, would = {}, frozenset[str]()
        if allocated is not None:
            rule, arm = allocated
            marks = {"experiment": rule.experiment, "arm": arm}
            chosen = frozenset(map(str, rule.faults))
            faults, would = (chosen, would) if arm == "treatment" else (faults, chosen)
        run = Run(faults).execute(PROGRAM)
        spans = [_rewritten(each, trace_id, marks, would) for each in run.spans]
        self.engine.receive_spans(spans, self.now)
        outcome = Outcome(trace_id, device, "", run.good)
        self.engine.receive_outcomes([outcome], self.now)


def _rewritten(each: Span, trace_id: str, marks: dict[str, str], would: frozenset[str]) -> Span:
    """The span of a run, as part of a trace, and for the root with what the edge wrote on it."""
    what = each.operation
    if what.serves:
        fields = {**BOOT, **marks}
        at = (each.start, each.end)
        return span("root", kind="server", trace=trace_id, failed=what.failed, at=at, **fields)
    if f"error@{what.point}" in would:
        name, at = each.span_id, (each.start, each.end)
        fields = {"point": str(what.point), "would_fire": "error"}
        return span(name, each.parent_id, trace=trace_id, failed=what.failed, at=at, **fields)
    return each._replace(trace_id=trace_id)


def settings() -> Settings:
    return Settings(kinds=("error",), treatment=0.3, control=0.3, min_traffic=50, max_union=None)


def test_from_traffic_to_findings(store: Store) -> None:
    # Given a service that watches an application with one single and one double weakness
    world = World(Engine(store, now=1000.0))
    campaign = world.engine.start_campaign(settings(), (), "operator", world.now)
    # When traffic goes on until nothing is left to try
    for _ in range(60):
        world.step()
    # Then it has found them, and written them down
    assert (campaign.state, campaign.reason) == (
        "finished",
        "nothing left to try within the bounds",
    )
    found = {(each["request_class"], tuple(each["faults"])) for each in store.findings()}
    assert found == {
        ("GET /boot", ("error@layout",)),
        ("GET /boot", ("error@playlist", "error@popular")),
    }
    # And nothing is armed any more, and every exposed device is accounted for
    assert world.engine.board.lease()["rules"] == []
    rows = store.experiments(campaign.id)
    assert {row["state"] for row in rows} == {"decided"}
    assert sum(row["counts"]["exposed"] for row in rows) <= campaign.exposed()


def test_halt_disarms_at_once_and_nothing_starts_before_resume(store: Store) -> None:
    world = World(Engine(store, now=1000.0))
    campaign = world.engine.start_campaign(settings(), (), "operator", world.now)
    while not world.engine.board.lease()["rules"]:
        world.step()

    world.engine.halt("release", "operator", world.now)

    assert world.engine.board.lease()["rules"] == []
    for _ in range(5):
        world.step()
    assert world.engine.board.lease()["rules"] == []
    assert "halted" in campaign.waiting["GET /boot"]
    with pytest.raises(Halted, match="ldfi resume"):
        world.engine.start_campaign(settings(), (), "operator", world.now)
    world.engine.resume("operator", world.now)
    world.step()
    assert world.engine.board.lease()["rules"]


def test_no_experiment_starts_while_the_steady_state_does_not_hold(store: Store) -> None:
    world = World(Engine(store, now=1000.0))
    for _ in range(3):
        world.step()
    for number in range(100):
        trace_id = f"{10_000 + number:032x}"
        method, url = BOOT["method"], BOOT["url"]
        root = span("root", kind="server", trace=trace_id, failed=True, method=method, url=url)
        world.engine.receive_spans([root], world.now)
        world.engine.receive_outcomes([Outcome(trace_id, f"x{number}", "", False)], world.now)
    campaign = world.engine.start_campaign(settings(), (), "operator", world.now)
    world.now += 1
    world.engine.tick(world.now)
    world.engine.tick(world.now)

    assert world.engine.board.lease()["rules"] == []
    assert "steady state" in campaign.waiting["GET /boot"]


def test_a_budget_that_is_spent_stops_new_experiments(store: Store) -> None:
    world = World(Engine(store, now=1000.0))
    frugal = Settings(kinds=("error",), treatment=0.3, control=0.3, min_traffic=50, member_budget=1)
    campaign = world.engine.start_campaign(frugal, (), "operator", world.now)
    for _ in range(20):
        world.step()

    assert len(campaign.experiments) == 1
    assert "budget" in campaign.waiting["GET /boot"]


def test_what_cannot_be_used_is_counted(store: Store) -> None:
    engine = Engine(store, now=1000.0)
    circle = [span("a", "b", trace="c" * 32), span("b", "a", trace="c" * 32)]
    lost = [span("x", "gone", kind="server", trace="d" * 32), span("y", "lost", trace="d" * 32)]
    engine.receive_spans(circle + lost, 1000.0)
    engine.receive_outcomes([Outcome("e" * 32, "d1", "", success=True)], 1000.0)
    stranger = span("r", kind="server", trace="f" * 32, experiment="unheard-of", arm="treatment")
    engine.receive_spans([stranger], 1000.0)
    engine.receive_outcomes([Outcome("f" * 32, "d2", "", success=True)], 1000.0)
    engine.tick(1002.0)
    engine.tick(1090.0)

    drops = engine.drops()
    assert drops["trace_without_root"] == 1
    assert drops["trace_incomplete"] == 1
    assert drops["join_unknown_trace"] == 1
    assert drops["unknown_experiment"] == 1


def test_one_campaign_at_a_time_and_none_by_a_wrong_name(store: Store) -> None:
    engine = Engine(store, now=1000.0)
    first = engine.start_campaign(settings(), (), "operator", 1000.0)

    with pytest.raises(Conflict, match=first.id):
        engine.start_campaign(settings(), (), "operator", 1000.0)
    with pytest.raises(NotFound, match="nowhere"):
        engine.campaign("nowhere")
    assert engine.stop_campaign(first.id, "enough", "operator", 1001.0).state == "stopped"
