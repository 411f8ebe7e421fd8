"""A database as it looks after some hours of work, and the service over it.

:func:`seed` runs the real engine over the world of :mod:`ldfi.testing.world` in simulated
time: traffic, campaigns to their end, findings confirmed, a halt, maintenance, tokens. A second or
two. :func:`alive` serves such a database with devices and an edge that go on in real time.
:func:`crowd` adds many experiments at once, for what has to stay fast.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI
from sqlalchemy import ColumnElement, insert, select

from ldfi.experiments.domain.campaign.calendar import Blackout, Calendar, Schedule
from ldfi.experiments.domain.campaign.campaign import Definition
from ldfi.experiments.domain.campaign.local_time import DAY
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.domain.settings import Limits, Settings
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import Database, findings, tokens
from ldfi.experiments.store.database import Change
from ldfi.experiments.store.schema import (
    CampaignRow,
    ExperimentRow,
    FindingRow,
    MaintenanceRow,
    ReplayRow,
)
from ldfi.scenarios.replays.measurement import Measurement, TargetRun
from ldfi.scenarios.replays.outcome import comparison_of
from ldfi.scenarios.replays.series import Series
from ldfi.testing.live_service import served
from ldfi.testing.programs import Call, Step
from ldfi.testing.world import World
from tests.kit.service import service

RATINGS = Call("api>http:GET:ratings/titles/*")
PLAYLIST = Call(
    "api>http:GET:playlist/members/*",
    (Step("critical", (Call("playlist>db:SELECT:recordsdb/lists"),)),),
)
POPULAR = Call("api>http:GET:popular/top")
LAYOUT = Call("api>http:GET:layout/screens/*")
BOOKMARKS = Call("api>db:SELECT:recordsdb/bookmarks")
SUGGEST = Call("api>http:GET:suggest/for/*")
SPELLING = Call("api>http:POST:spelling/check")
INDEX = Call(
    "api>http:GET:index/search",
    (Step("fallback", (Call("index>cache:get:hot"), Call("index>db:SELECT:indexdb/terms"))),),
)
LICENSE = Call("api>http:POST:license/keys")
CDN, CDN_SPARE = Call("api>http:GET:cdn/manifest"), Call("api>http:GET:cdn-spare/manifest")

PROGRAMS: Mapping[str, Call] = {
    "/boot": Call(
        "root",
        (
            Step("optional", (RATINGS,)),
            Step("fallback", (PLAYLIST, POPULAR)),
            Step("critical", (LAYOUT,)),
            Step("optional", (BOOKMARKS,)),
        ),
    ),
    "/search": Call(
        "root",
        (Step("optional", (SPELLING,)), Step("critical", (INDEX,)), Step("optional", (SUGGEST,))),
    ),
    "/play": Call("root", (Step("retry", (LICENSE,)), Step("fallback", (CDN, CDN_SPARE)))),
}
"""``/boot`` fails without the layout, or without playlist and popular; ``/search`` without the
index, or without both of its stores; ``/play`` without the license, or without both CDNs."""

LIMITS = Limits(members_per_hour=20_000, members_per_day=50_000)
QUICK: dict[str, Any] = {
    "apart": 0.0,
    "kinds": ("error",),
    "treatment": 0.3,
    "control": 0.3,
    "window": 30.0,
    "settle": 1.0,
    "follow": 0.0,
}
REQUESTS = 30


@dataclass(frozen=True, slots=True)
class Seeded:
    """What is there to look at. ``campaigns``: name → id. ``classes``: by name."""

    campaigns: Mapping[str, str]
    findings: list[str]
    experiments: list[str]
    classes: list[str]
    replays: list[str]


def seed(url: str, now: float | None = None) -> Seeded:
    """Fill the database at ``url`` with what happened in the five hours before ``now``."""
    now = time.time() if now is None else now
    database = Database(url)
    engine = Engine(database, now=now - 5 * 3600, lease=10.0, limits=LIMITS)
    world = World(database, PROGRAMS, engine=engine)
    world.now = now - 5 * 3600
    _traffic(world, 12)
    _explore(world, "nightly", Settings(**QUICK))
    _acknowledge_one(world, database)
    world.now = now - 2 * 3600
    _interrupt(world)
    _explore(world, "boot screen only", Settings(max_size=3, **QUICK), "GET /boot")
    _plan(world)
    _tokens(world, database)
    _replay(database, now - 1800)
    engine.scheduler.shut_down("the service was stopped", world.now)
    found = _seeded(database, engine)
    database.close()
    return found


TANK, GATE = "pump>http:PUT:tank/levels/*", "pump>db:UPDATE:sluicedb/gates"
HARBOUR = {
    "/locks": Call("root", (Step("critical", (Call(TANK),)), Step("optional", (Call(GATE),))))
}
"""An application that nobody has prepared anything for."""


def harbour(url: str) -> str:
    """Explore it in the last minutes; returns the id of the campaign, which found something.

    What is known of its traffic holds for ten minutes, as on any machine that stands still.
    """
    database, begun = Database(url), time.time() - 240
    world = World(database, HARBOUR, engine=Engine(database, now=begun, lease=10.0, limits=LIMITS))
    world.now = begun
    _traffic(world, 12)
    campaign = _explore(world, "locks", Settings(**QUICK))
    world.engine.scheduler.switch.halt("the sluice sticks", "ben", world.now)
    world.engine.scheduler.switch.resume("ben", world.now + 5)
    world.engine.scheduler.shut_down("over", world.now)
    database.close()
    return campaign


def _traffic(world: World, steps: int) -> None:
    for _ in range(steps):
        world.step(requests=REQUESTS)


def _explore(world: World, name: str, settings: Settings, *classes: str) -> str:
    scheduler = world.engine.scheduler
    campaign = scheduler.commands.start(Definition(settings, classes, name), "ann", world.now)
    for _ in range(2_000):
        world.step(requests=REQUESTS)
        if not campaign.live():
            return campaign.id
    raise AssertionError(f"{name} did not come to its end: {campaign.waiting}")


def _acknowledge_one(world: World, database: Database) -> None:
    with database.change(world.now, "ben") as change:
        known = change.session.scalars(select(FindingRow).where(FindingRow.state == "open"))
        (license_lost,) = (each for each in known if "license" in "".join(each.faults))
        findings.acknowledge(change, license_lost.id, "the team has it on its list")


def _interrupt(world: World) -> None:
    """A halt that was lifted, and a maintenance window that is over."""
    scheduler = world.engine.scheduler
    scheduler.switch.halt("checkout looks slow, we want to be sure", "ben", world.now)
    scheduler.switch.resume("ben", world.now + 240)
    window = Maintenance(
        id=secrets.token_hex(6),
        owner="ann",
        reason="rolling upgrade of recordsdb",
        down=("recordsdb",),
        opened_at=world.now + 300,
        until=world.now + 7500,
    )
    scheduler.commands.open_maintenance(window, "ann", world.now + 300)
    scheduler.commands.close_maintenance(window.id, "ann", world.now + 1500)


def _plan(world: World) -> None:
    """Campaigns that are to come, paused and stopped."""
    scheduler, now = world.engine.scheduler, world.now
    calendar = Calendar(
        "Europe/Berlin",
        ("mon", "tue", "wed", "thu"),
        ("09:00", "16:00"),
        (Blackout(_day(now + 6 * DAY), _day(now + 8 * DAY), "the big sale"),),
    )
    schedule = Schedule("0 9 * * mon,wed", "Europe/Berlin")
    weekly = Definition(Settings(), (), "working hours", calendar, schedule)
    scheduler.commands.start(weekly, "ann", now)
    paused = scheduler.commands.start(Definition(Settings(), ("GET /play",), "player"), "kim", now)
    scheduler.commands.pause(paused.id, "the player team ships 4.2 today", "kim", now + 60)
    stopped = scheduler.commands.start(Definition(Settings(max_size=3), (), "triples"), "kim", now)
    scheduler.commands.stop(stopped.id, "too many open hypotheses for now", "kim", now + 90)


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def _tokens(world: World, database: Database) -> None:
    with database.change(world.now, "ann") as change:
        tokens.create(change, "kim", "operator", world.now + 90 * 86_400)
        tokens.create(change, "wallboard", "viewer")
        entry, _ = tokens.create(change, "old-laptop", "operator")
        tokens.create(change, "edge-eu", "edge")
    with database.change(world.now + 30, "ann") as change:
        tokens.revoke(change, entry.id)


def _replay(database: Database, kept_at: float) -> None:
    """Two versions that were compared before an upgrade."""
    sides = []
    for seed, factor in ((1, 1.0), (2, 1.3)):
        rng, measured = random.Random(seed), Series("GET /boot")
        for number in range(2_000):
            measured.take(number / 50, factor * rng.lognormvariate(-3.5, 0.4), None)
        sides.append(measured)
    targets = [
        TargetRun(name, f"http://{name}.example", 50.0, {each.name: each})
        for name, each in zip(("recordsdb 4.0", "recordsdb 4.1"), sides, strict=True)
    ]
    run = Measurement("boot.jsonl", "constant", 40.0, 50.0, kept_at, 0.0, targets)
    document = comparison_of([run]).to_json()
    with database.change(kept_at) as change:
        change.session.add(
            ReplayRow(
                id=secrets.token_hex(6),
                kept_at=kept_at,
                kept_by="ann",
                verdict=document["verdict"],
                document=document,
            )
        )


def _seeded(database: Database, engine: Engine) -> Seeded:
    with database.read() as session:
        campaigns = {row.name: row.id for row in session.scalars(select(CampaignRow))}
        found = select(FindingRow.id).order_by(FindingRow.found_at.desc())
        tried = select(ExperimentRow.id).order_by(ExperimentRow.created_at.desc())
        return Seeded(
            campaigns=campaigns,
            findings=list(session.scalars(found)),
            experiments=list(session.scalars(tried)),
            classes=sorted(engine.catalogue.classes),
            replays=list(session.scalars(select(ReplayRow.id))),
        )


def crowd(url: str, experiments: int, others: int = 100, now: float | None = None) -> None:
    """Add as many experiments, and ``others`` of everything else that pages list: copies."""
    now = time.time() if now is None else now
    database = Database(url)
    with database.change(now) as change:
        decided, finished = ExperimentRow.state == "decided", CampaignRow.state == "finished"
        times = ("created_at", "armed_at", "ended_at", "lease_until")
        _copy(change, ExperimentRow, experiments, now, *times, where=decided)
        _copy(change, CampaignRow, others, now, "created_at", "run_started_at", where=finished)
        _copy(change, FindingRow, others, now, "found_at", where=FindingRow.state == "open")
        _copy(change, MaintenanceRow, others, now, "opened_at")
        for number in range(others):
            tokens.create(change, f"copy-{number}", "viewer")
        for number in range(experiments):
            change.audit("experiment tolerated", f"copy-{number:06}", "a copy")
    database.close()


def _copy(
    change: Change,
    table: type[ExperimentRow | CampaignRow | FindingRow | MaintenanceRow],
    count: int,
    now: float,
    *times: str,
    where: ColumnElement[bool] | None = None,
) -> None:
    """Add copies of one row, the ``times`` of each an hour and some seconds ago."""
    query = select(table).limit(1)
    model = change.session.scalars(query if where is None else query.where(where)).one()
    columns = {column.key: getattr(model, column.key) for column in table.__table__.columns}
    copies = [
        {**columns, "id": f"copy-{number:06}", **dict.fromkeys(times, now - 3600 - number)}
        for number in range(count)
    ]
    if copies:
        change.session.execute(insert(table), copies)


@contextmanager
def alive(
    url: str, programs: Mapping[str, Call] = PROGRAMS, requests: int = 20, **settings: Any
) -> Iterator[str]:
    """The service over the database at ``url``, with devices that go on asking; gives its URL.

    ``settings`` are those of :class:`ldfi.experiments.api.app.Service`.
    """
    app = service(url, **{"lease": 3.0, "quiet": 0.1, "limits": LIMITS, **settings})
    without = app.router.lifespan_context

    async def traffic(app: FastAPI) -> None:
        world = World(app.state.database, programs, engine=app.state.engine)
        while True:
            world.now = time.time()
            world.step(requests=requests, seconds=0.0)
            await asyncio.sleep(0.2)

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        async with without(app):
            task = asyncio.create_task(traffic(app))
            yield
            task.cancel()

    app.router.lifespan_context = running
    with served(app) as root:
        yield root
