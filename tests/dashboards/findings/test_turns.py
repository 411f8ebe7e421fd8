"""A page that has much to work out leaves turns to the engine, which must tick meanwhile."""

from __future__ import annotations

import asyncio

from ldfi.analysis.repairs.owners import Owners
from ldfi.dashboards.findings.findings import explained_in_turns
from ldfi.experiments.api.repairs import Explained, explained
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import Database
from tests.dashboards.findings.test_findings_story import finding

OWNERS = Owners.parse("* @team")
FEW = 100
"""Findings that are worked out within some hundredths of a second."""


def test_findings_are_explained_a_few_at_a_time() -> None:
    database = Database("sqlite://")
    engine = Engine(database, now=0.0)
    rows = [
        finding("GET /boot", "refused@api>http:GET:license/keys", number=number)
        for number in range(10 * FEW + 1)
    ]

    async def turns() -> tuple[int, list[Explained]]:
        taken = 0
        page = asyncio.create_task(explained_in_turns(rows, engine, database, OWNERS))
        while not page.done():
            taken += 1
            await asyncio.sleep(0)
        return taken, page.result()

    taken, told = asyncio.run(turns())
    with database.read() as session:
        assert told == explained(session, rows, engine, OWNERS)
    assert taken > len(rows) / FEW
    database.close()
