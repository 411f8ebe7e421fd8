"""More partitions: only when nothing is in flight, in the safe order, and again if need be."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.errors import Conflict, StreamError
from ldfi.experiments.streams.partition_growth import Growth, TopicsSeen, grow, plan
from ldfi.experiments.streams.stream import Topics

TOPICS = Topics("t")
KEYED = (TOPICS.observations, TOPICS.metrics, TOPICS.spans)


def standing(**more: Any) -> TopicsSeen:
    quiet = TopicsSeen(dict.fromkeys(KEYED, 4), 0, {}, {})
    return replace(quiet, **more)


@dataclass
class Keeper:
    """Brokers that go away after so many changes."""

    partitions: dict[str, int]
    patience: int = 100
    done: list[str] = field(default_factory=list)

    def standing(self, _: Topics) -> TopicsSeen:
        return TopicsSeen(dict(self.partitions), 0, {}, {})

    def grow(self, topic: str, partitions: int) -> None:
        if len(self.done) >= self.patience:
            raise StreamError("gone")
        self.done.append(topic)
        self.partitions[topic] = partitions


@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 3))
def test_what_broke_off_is_finished_when_asked_again(now: int, wanted: int, patience: int) -> None:
    keeper = Keeper(dict.fromkeys(KEYED, now), patience)
    if wanted < now:
        with pytest.raises(Conflict, match="never shrink"):
            plan(TOPICS, keeper.standing(TOPICS), wanted)
        return
    before = keeper.standing(TOPICS)
    planned = plan(TOPICS, before, wanted)
    assert [each.topic for each in planned] == (list(KEYED) if wanted > now else [])
    if wanted > now and patience < len(KEYED):
        with pytest.raises(StreamError):
            grow(keeper, TOPICS, planned, before)
        keeper.patience = 100
        before = keeper.standing(TOPICS)
        planned = plan(TOPICS, before, wanted)
        assert [each.topic for each in planned] == list(KEYED[patience:])
    grow(keeper, TOPICS, planned, before)
    assert keeper.partitions == dict.fromkeys(KEYED, wanted)
    assert keeper.done == (list(KEYED) if wanted > now else [])


def test_nothing_grows_while_somebody_reads() -> None:
    with pytest.raises(Conflict, match="2 ingest workers still read"):
        plan(TOPICS, standing(members=2), 8)


@pytest.mark.parametrize(
    ("ends", "committed", "left"), [(5, 5, 0), (5, 3, 2), (5, None, 5), (0, None, 0), (3, 5, 0)]
)
def test_nothing_grows_with_work_in_flight(ends: int, committed: int | None, left: int) -> None:
    place = (TOPICS.spans, 1)
    found = standing(ends={place: ends}, committed={} if committed is None else {place: committed})
    assert found.unfinished() == left
    if not left:
        assert plan(TOPICS, found, 5) == [Growth(name, 4, 5) for name in KEYED]
        return
    with pytest.raises(Conflict, match=f"{left} messages are not finished"):
        plan(TOPICS, found, 5)


def test_who_has_enough_is_told_so_whoever_reads() -> None:
    assert plan(TOPICS, standing(members=2, ends={(TOPICS.spans, 0): 9}), 4) == []


def test_topics_are_made_by_the_service_only() -> None:
    with pytest.raises(Conflict, match=r"no topic t\.spans"):
        plan(TOPICS, standing(partitions=dict.fromkeys(KEYED[:2], 4)), 8)


def test_what_was_written_meanwhile_is_counted() -> None:
    class Busy(Keeper):
        def standing(self, _: Topics) -> TopicsSeen:
            place = (TOPICS.spans, 0)
            return TopicsSeen(dict(self.partitions), 0, {place: 5 + len(self.done)}, {place: 5})

    keeper = Busy(dict.fromkeys(KEYED, 1))
    before = keeper.standing(TOPICS)
    assert grow(keeper, TOPICS, plan(TOPICS, before, 2), before) == 3


def test_everything_has_a_retention_that_is_made() -> None:
    kept = TOPICS.retention(traffic=1.0, events=2.0, dead_letters=3.0)
    assert kept.keys() == TOPICS.partitions(1).keys()
    assert {kept[name] for name in KEYED} == {1.0}
    assert (kept[TOPICS.events], kept[TOPICS.dead_letters]) == (2.0, 3.0)
