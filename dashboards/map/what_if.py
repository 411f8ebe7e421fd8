"""What if this were down: tick it, and see what would hurt then. From the evidence alone."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from ldfi.dashboards.render import rendered
from ldfi.dashboards.route import PageRoute
from ldfi.dashboards.systems import ELSEWHERE, MOST_DOWN, systems_of
from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.documents import LINE, Line
from ldfi.experiments.api.service import Db, Running
from ldfi.experiments.domain.gates.whatif import WhatIf, what_if
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.scheduler.evidence import knowledge_from
from ldfi.experiments.store import snapshots
from ldfi.experiments.store.database import Database

router = APIRouter(route_class=PageRoute)


@router.get("/what-if")
async def ask(
    request: Request,
    engine: Running,
    db: Db,
    _caller: Viewer,
    down: Annotated[list[Line], Query(max_length=MOST_DOWN)] = [],  # noqa: B006 - FastAPI copies it
    request_class: Annotated[str, Query(pattern=LINE, max_length=1000)] = "",
) -> Response:
    """Show what is ticked, and the answer once something is."""
    ticked = [name for name in down if name]
    systems = systems_of(engine.catalogue.classes.values())
    known = {name for points in systems.values() for name in points} | set(systems)
    answers = await _answers(engine, db, ticked, request_class) if ticked else []
    answers.sort(key=lambda answer: (-len(answer.hurts_now), -len(answer.unknown)))
    return rendered(
        request,
        "map/what_if.html",
        systems={name: points for name, points in systems.items() if name != ELSEWHERE},
        elsewhere=systems.get(ELSEWHERE, []),
        ticked=ticked,
        unknown_names=[name for name in ticked if name not in known],
        classes=sorted(engine.catalogue.classes),
        request_class=request_class,
        answers=answers,
    )


async def _answers(
    engine: Engine, db: Database, down: list[str], request_class: str
) -> list[WhatIf]:
    """Answer for each class that calls any of it."""
    chosen = [
        known
        for name, known in sorted(engine.catalogue.classes.items())
        if not request_class or name == request_class
    ]
    with db.read() as session:
        taught = snapshots.of_classes(session, [known.name for known in chosen])
    answers = []
    for known in chosen:
        await asyncio.sleep(0)  # the watch goes on in between
        answer = what_if(knowledge_from(known, taught[known.name]), down)
        if answer is not None:
            answers.append(answer)
    return answers
