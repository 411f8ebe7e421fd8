"""The gate on simulated stores, through the whole engine: it sees who is dead, late or back."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

from benchmarks.gate import STORE, TOWNS, Incident, Town, counted, summed, targets
from ldfi.experiments.domain.gates.gate import Gate, gate
from ldfi.experiments.scheduler.evidence import knowledge_of
from ldfi.lineage.span import Span
from ldfi.testing.world import World

pytestmark = pytest.mark.long


class Blind(Town):
    """One whose gate does not look: it knows what is survived, and nothing of now."""

    def ask(self, node: str) -> Gate:
        engine = self.world.engine
        with self.world.database.read() as session:
            known = [knowledge_of(session, each) for each in engine.catalogue.classes.values()]
        return gate([node], engine.scheduler.state.windows, known, 0)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A store of three that a quorum of two reads, and of which all is known."""
    programs, nodes, _ = TOWNS["two of three"]
    with World.in_memory(programs) as made:
        Town(made, programs, nodes, "learning").learn()
        yield made


def town(world: World, kind: type[Town] = Town) -> Town:
    programs, nodes, _ = TOWNS["two of three"]
    made = kind(world, programs, nodes, "test")
    made.go_on(30.0)
    return made


def dies(town: Town, *nodes: str, seconds: float = 1e6, lag: int = 0) -> None:
    now = town.world.now
    town.fate.incidents = tuple(Incident(node, now, now + seconds, lag) for node in nodes)


def test_no_second_node_may_go_while_one_is_dead_and_again_when_it_is_back(world: World) -> None:
    made = town(world)
    assert made.ask(STORE[1]).verdict == "safe"

    dies(made, STORE[0], seconds=15.0)
    made.go_on(3.0)

    refused = made.ask(STORE[1])
    assert refused.verdict == "refused"
    assert [each.name for each in refused.signs] == ["store-1"]
    assert refused.why == ("GET /items: the outage by itself hurts",)
    assert made.ask(STORE[0]).verdict == "safe"  # it is down anyway
    made.go_on(15.0)
    assert made.ask(STORE[1]).verdict == "safe"


def go_on_finely(town: Town, requests: int) -> None:
    """A request every tenth of a second."""
    for _ in range(requests):
        town.world.step(1, 0.1)


def test_a_death_is_seen_by_the_third_request_that_met_it(world: World) -> None:
    made = town(world)
    dies(made, STORE[0], seconds=5.0)
    go_on_finely(made, 3)
    assert made.ask(STORE[1]).verdict == "refused"
    made.go_on(20.0)
    assert made.ask(STORE[1]).verdict == "safe"


def test_a_death_is_seen_before_any_edge_has_told_of_the_requests(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = town(world)
    receive, held = world.engine.receive_spans, list[Span]()

    def roots_come_last(spans: Iterable[Span], now: float) -> None:
        came = list(spans)
        held.extend(each for each in came if each.parent_id is None)
        receive([each for each in came if each.parent_id is not None], now)

    monkeypatch.setattr(world.engine, "receive_spans", roots_come_last)
    dies(made, STORE[1], seconds=5.0)
    go_on_finely(made, 3)
    assert made.ask(STORE[2]).verdict == "refused"
    monkeypatch.undo()
    receive(held, world.now)
    made.go_on(20.0)
    assert made.ask(STORE[1]).verdict == "safe"


def test_nothing_may_go_while_no_request_succeeds_or_none_comes(world: World) -> None:
    made = town(world)
    dies(made, *STORE, seconds=10.0)
    made.go_on(5.0)
    refused = made.ask(STORE[1])
    assert refused.verdict == "refused"
    made.go_on(20.0)
    assert made.ask(STORE[1]).verdict == "safe"
    world.now += 61.0
    assert made.ask(STORE[1]).verdict == "unknown"


def test_a_node_that_answers_late_is_not_counted_on(world: World) -> None:
    made = town(world)
    made.go_on(60.0)
    dies(made, STORE[0], seconds=10.0, lag=500)
    made.go_on(6.0)
    doubted = made.ask(STORE[1])
    assert doubted.verdict == "unknown"
    assert "answers late now" in doubted.why[0]
    made.go_on(15.0)
    assert made.ask(STORE[1]).verdict == "safe"


def test_the_benchmark_notices_a_gate_that_does_not_look(world: World) -> None:
    made = town(world, Blind)
    dies(made, STORE[0], seconds=30.0)
    made.go_on(5.0)
    assert made.step(STORE[1]) == ("safe", "harmful")
    made.go_on(40.0)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_two_hundred_schedules_in_which_nodes_die_lag_and_come_back() -> None:
    """Schedules are drawn anew each time: a share is held against its target as chance allows."""
    found = [counted(name, 200 // len(TOWNS)) for name in TOWNS]
    total = summed("all", sum(found, Counter()))
    shares = {name for name, each in targets(total).items() if each["target"] > 0}
    assert shares == {"refused of the harmless", "refused or unknown of the harmless"}
    missed = {name: each for name, each in targets(total).items() if not each["met"]}
    assert missed.keys() <= shares, total
    assert likely(total["refused"] + total["unknown"], total["harmless"], 0.05), total
    assert total["harmless"] > 250


def likely(some: int, of: int, share: float) -> bool:
    """Whether as many, or more, are no rarity where each is one with this probability."""
    as_many = (math.comb(of, k) * share**k * (1 - share) ** (of - k) for k in range(some, of + 1))
    return sum(as_many) > 0.001


def test_what_is_likely_is_told_by_the_binomial_distribution() -> None:
    assert likely(21, 357, 0.05)
    assert likely(18, 357, 0.05)
    assert not likely(36, 357, 0.05)
