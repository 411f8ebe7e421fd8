"""Certificates are written beside the loop, of a copy, and are all on record in the end."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.store.schema import CampaignRow
from ldfi.solver import Explorer, Statement
from ldfi.testing.world import FOUND, PROGRAM, QUICK, World
from tests.solver.systems import System, systems


def test_a_class_is_certified_beside_the_loop_and_the_record_is_complete() -> None:
    # Given a service that writes certificates beside its loop
    threads: set[int] = set()
    written = Statement.certificate

    def noting(self: Statement) -> object:
        threads.add(threading.get_ident())
        return written(self)

    async def served() -> tuple[CampaignRow, list[str]]:
        with World.in_memory({"/boot": PROGRAM}) as world:
            scheduler = world.engine.scheduler
            certifier = asyncio.create_task(scheduler.certifier.run())
            await asyncio.sleep(0)
            campaign = world.start(QUICK)
            seen = []
            for _ in range(2_000):
                world.step(40)
                await asyncio.sleep(0)
                seen += [each["request_class"] for each in scheduler.certificates(campaign)]
                if not campaign.live() and campaign.id not in scheduler.state.campaigns:
                    break
                if not campaign.live():
                    await asyncio.sleep(0.05)
            certifier.cancel()
            with suppress(asyncio.CancelledError):
                await certifier
            with world.database.read() as session:
                return session.get_one(CampaignRow, campaign.id), seen

    Statement.certificate = noting  # type: ignore[method-assign, assignment]
    try:
        row, seen = asyncio.run(served())
    finally:
        Statement.certificate = written  # type: ignore[method-assign]
    # Then none was written in it, they could be read meanwhile, and the last is on record
    assert threads and threading.get_ident() not in threads
    assert seen
    (document,) = row.certificates
    found = {tuple(each) for each in document["certificate"]["findings"]}
    assert found == FOUND
    assert document["certificate"]["open"] == []


@given(systems(rich=True), st.lists(st.frozensets(st.sampled_from("abcdefgX"), max_size=3)))
def test_a_statement_says_what_was_known_then(system: System, later: list[frozenset[str]]) -> None:
    explorer = Explorer(system.points, domains=system.domains, max_size=2)
    support = system.run(())
    if support is not None:
        explorer.observe(support)
    for _ in range(3):
        faults = frozenset(map(str, explorer.propose() or ()))
        good = system.run(faults)
        if faults:
            explorer.record(injected=faults, succeeded=good is not None, support=good)
    before, statement = explorer.certificate(), explorer.statement()
    # When it learns on
    explorer.imply("z", "a")
    explorer.exclude({"b"})
    for faults in later:
        explorer.record(injected=faults, succeeded=len(faults) != 1)
    # Then what was said stays what it was
    assert statement.certificate() == before


def test_a_certificate_is_not_written_twice_of_the_same() -> None:
    with World.in_memory({"/boot": PROGRAM}) as world:
        campaign = world.start(QUICK)
        for _ in range(20):
            world.step(40)
        first, again = campaign.certificates(), campaign.certificates()
        assert first and all(one is other for one, other in zip(first, again, strict=True))
