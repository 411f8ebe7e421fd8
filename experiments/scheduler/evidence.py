"""All the evidence there is about one request class, from whichever campaign it came.

A class with thousands of experiments takes seconds. So whoever is asked while the watch goes on
(:func:`knowledge_beside`) copies in the loop what is there, which takes no time, and goes over it
in a thread.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from sqlalchemy.orm import Session

from ldfi.experiments.domain.campaign.exploration import Exploration
from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.campaign.result import ExperimentResult
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.catalogue import KnownClass
from ldfi.experiments.store import Database, snapshots
from ldfi.experiments.store.snapshots import Taught


def knowledge_of(session: Session, known: KnownClass) -> Knowledge:
    """Return the knowledge of a class: from its traffic and all experiments on its version."""
    return knowledge_from(known, snapshots.of_classes(session, [known.name])[known.name])


async def knowledge_beside(db: Database, known: KnownClass) -> Knowledge:
    """Gather the same beside the event loop. Nothing in it changes any more."""
    with db.read() as session:
        taught = snapshots.of_classes(session, [known.name])[known.name]
    copied = replace(known, traffic=known.traffic.copy())
    return await asyncio.to_thread(knowledge_from, copied, taught)


def knowledge_from(known: KnownClass, taught: Taught) -> Knowledge:
    """Return the knowledge from traffic and those of these results that are of its version."""
    exploration = explored_from(known, taught)
    exploration.begin_run(())
    return exploration.knowledge


def explored_from(known: KnownClass, taught: Taught) -> Exploration:
    """Explore a class as all campaigns together have left it."""
    exploration = Exploration(Knowledge(known.name, Settings(), known.traffic), known.version)
    if taught.stored is not None and taught.stored.version == known.version:
        exploration.resume(taught.stored.snapshot)
    current = (each for each in taught.results if each["version"] == known.version)
    exploration.replay((ExperimentResult.from_json(dict(each)) for each in current), told=False)
    return exploration
