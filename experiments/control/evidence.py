"""All the evidence there is about one request class, from whichever campaign it came.

A class with thousands of experiments takes seconds. So whoever is asked while the watch goes on
(:func:`knowledge_beside`) copies in the loop what is there, which takes no time, and goes over it
in a thread.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from ldfi.experiments.domain.campaign.exploration import Exploration
from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.campaign.lesson import Lesson
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.catalogue import KnownClass
from ldfi.experiments.store import Database
from ldfi.experiments.store.schema import ExperimentRow


def knowledge_of(session: Session, known: KnownClass) -> Knowledge:
    """Gather what traffic and all experiments on this version of the class have shown."""
    return knowledge_from(known, lessons_of(session, [known.name]).get(known.name, []))


async def knowledge_beside(db: Database, known: KnownClass) -> Knowledge:
    """Gather the same beside the event loop. Nothing in it changes any more."""
    with db.read() as session:
        lessons = lessons_of(session, [known.name]).get(known.name, [])
    copied = replace(known, traffic=known.traffic.copy())
    return await asyncio.to_thread(knowledge_from, copied, lessons)


def lessons_of(session: Session, names: Collection[str]) -> dict[str, list[dict[str, Any]]]:
    """Read what experiments taught of each of these classes, in order: one query for all."""
    query = select(ExperimentRow.request_class, ExperimentRow.lesson).where(
        ExperimentRow.request_class.in_(names),
        ExperimentRow.state == "decided",
        ExperimentRow.lesson.is_not(None),
    )
    found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for name, lesson in session.execute(query.order_by(ExperimentRow.ended_at, ExperimentRow.id)):
        found[name].append(lesson)
    return dict(found)


def knowledge_from(known: KnownClass, lessons: Iterable[dict[str, Any]]) -> Knowledge:
    """Gather what traffic and these lessons have shown, as far as they are of this version."""
    exploration = Exploration(Knowledge(known.name, Settings(), known.traffic), known.version)
    exploration.replay(
        Lesson.from_json(lesson) for lesson in lessons if lesson["version"] == known.version
    )
    return exploration.knowledge
