"""The map: one graph of services over all request classes; a click takes a service down."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import select

from ldfi.dashboards.evidence_cache import KEPT, EvidenceKept, evidence_kept
from ldfi.dashboards.links import MOST_DOWN
from ldfi.dashboards.map.services_layout import layout
from ldfi.dashboards.map.services_story import FATES, STANDINGS, STANDINGS_DOWN, Looked, service_map
from ldfi.dashboards.render import rendered
from ldfi.dashboards.route import PageRoute
from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.input_documents import LINE, Filter, Line
from ldfi.experiments.api.repairs import called_of
from ldfi.experiments.api.service import Db, Running
from ldfi.experiments.domain.campaign.lifecycle import HURTING
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import FindingRow
from ldfi.experiments.telemetry import clock

router = APIRouter(route_class=PageRoute)

FOLDED: Final = 24
"""Services above which the map opens on what hurts, where anything is known to: what a screen
holds."""

MOST_HURTING: Final = 12
MOST_CLASSES: Final = 8
"""What is drawn at most where only what hurts is: services that hurt, and classes."""

Show = Literal["all", "hurts"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the address asks for; every part may be left out."""

    down: tuple[str, ...] = ()
    request_class: str = ""
    find: str = ""
    show: Show | None = None

    def to(self, **other: str | tuple[str, ...] | None) -> str:
        """Link to the same with something else."""
        then = replace(self, **other)  # type: ignore[arg-type]
        asked = [("down", name) for name in then.down]
        asked += [
            (name, value)
            for name, value in (
                ("request_class", then.request_class),
                ("find", then.find),
                ("show", then.show),
            )
            if value
        ]
        return f"/map?{urlencode(asked)}" if asked else "/map"

    def with_down(self, name: str) -> str:
        """Link to the same with this one down too; or up again, where it is down."""
        if name in self.down:
            return self.to(down=tuple(each for each in self.down if each != name))
        return self.to(down=(*self.down, name))


@router.get("/map")
async def show(
    request: Request,
    engine: Running,
    db: Db,
    _caller: Viewer,
    down: Annotated[list[Line], Query(max_length=MOST_DOWN)] = [],  # noqa: B006 - FastAPI copies it
    request_class: Annotated[str, Query(pattern=LINE, max_length=1000)] = "",
    find: Annotated[Filter, Query()] = None,
    show: Annotated[Show | None, Query()] = None,
) -> Response:
    """Show what requests rely on, the gravest first; and what becomes of them with some of it
    down."""
    named = tuple(dict.fromkeys(name for name in down if name))
    wanted = Wanted(named, request_class, find or "", show)
    hurting = select(FindingRow).where(FindingRow.state.in_(HURTING)).order_by(FindingRow.id)
    looked = await _looked_at(engine, db, evidence_kept(request), request_class)
    with db.read() as session:
        findings = list(session.scalars(hurting))
    whole = service_map(
        looked, findings, engine.scheduler.state.injectors, named, called_of(request)
    )
    hurting_known = any(whole.by_standing.get(each) for each in ("hurts", "together"))
    many = len(whole.services) > FOLDED and hurting_known
    only_hurting = show == "hurts" or (show is None and many)
    drawn = whole.only_hurting(MOST_HURTING, MOST_CLASSES) if only_hurting else whole
    return rendered(
        request,
        "map/services.html",
        map=whole,
        layout=layout(drawn),
        left_out=len(whole.services) - len(drawn.services),
        hurting_left_out=len(whole.hurting) - len(drawn.hurting),
        classes_left_out=len(whole.classes) - len(drawn.classes),
        only_hurting=only_hurting,
        wanted=wanted,
        classes=sorted(engine.catalogue.classes),
        most=KEPT,
        standings=STANDINGS_DOWN if named else STANDINGS,
        fates=FATES,
        found={each.name for each in whole.services if _matches(find, each.name)},
    )


@router.get("/what-if")
async def moved(
    _caller: Viewer,
    down: Annotated[list[Line], Query(max_length=MOST_DOWN)] = [],  # noqa: B006 - FastAPI copies it
    request_class: Annotated[str, Query(pattern=LINE, max_length=1000)] = "",
) -> Response:
    """Lead to the map, which answers what this page did; links to it are kept in wikis."""
    return RedirectResponse(Wanted(tuple(down), request_class).to(), status_code=308)


async def _looked_at(
    engine: Engine, db: Database, kept: EvidenceKept, request_class: str
) -> list[Looked]:
    """Gather what is known of the busiest classes, or of one."""
    now = clock.now()
    rates = {name: known.rate(now) for name, known in engine.catalogue.classes.items()}
    total = sum(rates.values())
    chosen = [
        known
        for name, known in engine.catalogue.classes.items()
        if not request_class or name == request_class
    ]
    chosen.sort(key=lambda known: (-rates[known.name], known.name))
    with db.read() as session:
        evidence = kept.each_of(session, chosen[:KEPT])
    looked = []
    for each in evidence:
        share = rates[each.knowledge.name] / total if total else 0.0
        looked.append(Looked(each.knowledge, share))
        await asyncio.sleep(0)  # the watch goes on in between
    return looked


def _matches(find: str | None, name: str) -> bool:
    return find is not None and find.casefold() in name.casefold()
