"""What is known of a class, gathered beside the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import TypeVar

import pytest

from ldfi.experiments.api import safety
from ldfi.experiments.cluster.tokens import Caller
from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.traffic.catalogue import KnownClass
from ldfi.experiments.scheduler import evidence
from ldfi.experiments.scheduler.evidence import knowledge_beside, knowledge_of
from ldfi.experiments.store.snapshots import Taught
from ldfi.testing.world import QUICK, World

Answer = TypeVar("Answer")


def test_questions_are_answered_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a class of which all is known, and whose results take long to go over
    threads: list[int] = []
    gathered, going_on = evidence.knowledge_from, threading.Event()
    asked = Caller("1", "ann", "viewer")

    def slowly(known: KnownClass, taught: Taught) -> Knowledge:
        threads.append(threading.get_ident())
        assert going_on.wait(20.0), "the loop stands still meanwhile"
        return gathered(known, taught)

    monkeypatch.setattr(evidence, "knowledge_from", slowly)

    async def meanwhile(world: World, asking: Coroutine[None, None, Answer]) -> Answer:
        going_on.clear()
        before, answering = len(threads), asyncio.ensure_future(asking)
        while len(threads) == before:
            await asyncio.sleep(0.01)
        world.steps(3)  # requests come in
        going_on.set()
        return await answering

    async def answers(world: World) -> tuple[str, str]:
        engine, db = world.engine, world.database
        (what,) = await meanwhile(world, safety.whatif(engine, db, asked, ["playlist"], None))
        allowed = await meanwhile(world, safety.gate(engine, db, asked, ["layout"], 0))
        return what.already, allowed.verdict

    with World.in_memory() as world:
        world.finish(world.start(QUICK))
        # Then the loop goes on, and the answer is what is known
        already, verdict = asyncio.run(answers(world))
    assert (already, verdict) == ("safe", "refused")
    assert threading.get_ident() not in threads


def test_what_is_known_beside_the_loop_is_what_is_known_in_it() -> None:
    with World.in_memory() as world:
        world.finish(world.start(QUICK))
        (known,) = world.engine.catalogue.classes.values()
        copied = asyncio.run(knowledge_beside(world.database, known))
        with world.database.read() as session:
            there = knowledge_of(session, known)
        assert copied.certificate() == there.certificate()
        good = known.traffic.good
        world.steps(3)
        assert (copied.traffic.good, known.traffic.good > good) == (good, True)
