"""All the evidence there is about one request class, from whichever campaign it came."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from experiments.domain.catalogue import KnownClass
from experiments.domain.exploration import Exploration
from experiments.domain.knowledge import Knowledge
from experiments.domain.lesson import Lesson
from experiments.domain.settings import Settings
from experiments.store.schema import ExperimentRow


def knowledge_of(session: Session, known: KnownClass) -> Knowledge:
    """What traffic and all experiments on this version of the class have shown."""
    query = select(ExperimentRow.lesson).where(
        ExperimentRow.request_class == known.name,
        ExperimentRow.state == "decided",
        ExperimentRow.lesson.is_not(None),
    )
    query = query.order_by(ExperimentRow.ended_at, ExperimentRow.id)
    exploration = Exploration(known.name, Settings(), known.traffic, known.version)
    exploration.replay(
        Lesson.from_json(lesson)
        for lesson in session.scalars(query)
        if lesson is not None and lesson["version"] == known.version
    )
    return exploration.knowledge
