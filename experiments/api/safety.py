"""The kill switch, maintenance windows, what-if, and who did what."""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import Annotated, ClassVar

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import select

from ldfi.experiments.api.audit_rows import audited
from ldfi.experiments.api.audit_view import AuditView
from ldfi.experiments.api.auth import Operator, Viewer
from ldfi.experiments.api.gate_view import (
    GateView,
    MaintenanceView,
    SignView,
    StepView,
    WatchedClass,
    WhatIfView,
)
from ldfi.experiments.api.idempotency import IdempotentRoute
from ldfi.experiments.api.input_documents import (
    UNSAID,
    AsRead,
    Filter,
    Id,
    Line,
    PerhapsReason,
    Why,
    all_but,
)
from ldfi.experiments.api.otlp_grpc import OtlpGrpc
from ldfi.experiments.api.pagination import Cursor, Limit, Links, Page, page
from ldfi.experiments.api.service import Db, PerhapsRunning, Relaying, Running
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.domain.gates.upgrade_gate import gate as gate_of
from ldfi.experiments.domain.gates.whatif import what_if
from ldfi.experiments.domain.traffic.catalogue import KnownClass
from ldfi.experiments.domain.traffic.patterns import matching
from ldfi.experiments.scheduler.engine import Engine, OutcomeSource
from ldfi.experiments.scheduler.engine_status import engine_status
from ldfi.experiments.scheduler.evidence import knowledge_beside
from ldfi.experiments.store import arming, chain_check, halts
from ldfi.experiments.store.maintenance import window as window_by_id
from ldfi.experiments.store.maintenance import window_of
from ldfi.experiments.store.schema import AuditRow, MaintenanceRow
from ldfi.experiments.telemetry import clock
from ldfi.lineage import machine_code
from ldfi.lineage.machine_code import Way

_log = logging.getLogger("ldfi")

router = APIRouter(prefix="/api/v1", tags=["safety"], route_class=IdempotentRoute)

Pattern = Annotated[Line, Field(min_length=1, max_length=1000)]
Down = Annotated[
    list[Line], Query(min_length=1, max_length=100, description="Points, services, systems.")
]


class Budget(BaseModel):
    """Members charged within some time, and how many may be."""

    charged: int = Field(
        description="Members that experiments of that time have reserved or treated."
    )
    limit: int = Field(
        description="How many may be, of all experiments together (a rolling window)."
    )


class Status(BaseModel):
    """What is going on, and what had to be dropped."""

    halted: str | None = Field(description="Why everything is halted; null when nothing is.")
    guardrail: str | None = Field(description="The guardrail that is breached; null when none is.")
    armed: list[str] = Field(
        description="Experiments whose faults are being injected now.", examples=[["7d20c4e8b1f3"]]
    )
    edges: int = Field(description="Edges that ask for rules.")
    hour: Budget = Field(description="The budget of the last hour.")
    day: Budget = Field(description="The budget of the last day.")
    clock_jumped: float = Field(
        description="Seconds by which the machine's clock was set forward within the last day; "
        "the budgets look so much further back."
    )
    maintenance: list[MaintenanceView] = Field(description="Maintenance windows that are open.")
    spans: int = Field(description="Spans received since this process began to lead.")
    outcomes: int = Field(description="Outcomes received since then, of devices or of root spans.")
    went_well: int = Field(description="Outcomes that were good.")
    outcomes_from: OutcomeSource = Field(
        description="Who says how a request went: devices, or, where none report, its root span."
    )
    dropped: dict[str, int] = Field(
        description="What was received since then and could not be used: how many, by reason.",
        examples=[{"span_late": 3}],
    )
    grpc_port: int = Field(
        0, description="Where this process takes OTLP over gRPC; 0 where it does not."
    )
    grpc_exports: int = Field(0, description="Exports that have come in there, refused ones too.")
    grpc_off: str = Field(
        "", description="Why it takes none; empty where it does, or is set to `off`.", examples=[""]
    )
    by_kind_only: dict[str, list[str]] = Field(
        {},
        description="By service, injectors that report kinds of calls and no client libraries, as "
        "older ones do: what they have no hold of counts as reached.",
        examples=[{"api": ["python/0.2.0"]}],
    )
    silent: list[str] = Field(
        [],
        description="Services whose injectors report, and of which no trace tells.",
        examples=[["mailer"]],
    )
    bare: dict[str, dict[str, int]] = Field(
        {},
        description="By service and library, calls at injection points that ran in no trace at"
        " all: so many at least, as injectors say.",
    )
    not_signed: str | None = Field(
        description="Why the runs on record are not signed any more; null where they are, or this"
        " process has no key."
    )
    decoding: Way = Field(
        description="By whom this process decodes OTLP as protobuf: by the extension `ldfi-native`,"
        " or by Python, which does the same more slowly."
    )


class Halt(BaseModel):
    """Whether everything is halted, and why."""

    halted: str | None = Field(
        description="Why everything is halted; null: nothing is.", examples=["checkout is down"]
    )


class Disarmed(Halt):
    """What a halt has done."""

    disarmed: list[str] = Field(
        description="Experiments that were armed here. A leader elsewhere disarms within a second.",
        examples=[["0b9c6a7e2f10"]],
    )
    on_record: bool = Field(
        description="False: the database takes no writes. It holds here, and is written later."
    )


class NewMaintenance(AsRead):
    """What will be down, for how long at most, and why.

    A window as it is read opens another one like it, from now on.
    """

    filled_in: ClassVar = all_but(MaintenanceView, {"down", "seconds", "reason", "owner"})

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"down": ["recordsdb"], "seconds": 7200, "reason": "rolling upgrade"}]
        }
    )

    down: list[Pattern] = Field(
        [],
        max_length=100,
        description="Points, services or systems, with *; none: everything.",
        examples=[["recordsdb"]],
    )
    seconds: Annotated[
        float, Field(gt=0, le=30 * 86_400, description="It ends by itself after so long.")
    ] = 7_200
    reason: Why
    owner: Annotated[Line, Field(max_length=64, description="Default: who asks.")] = ""


@router.get("/status")
async def status(request: Request, engine: Running, db: Db, _caller: Viewer) -> Status:
    """Show whether anything is halted or armed, what the budgets have left, what was dropped."""
    now = clock.now()
    limits = engine.scheduler.state.limits
    over_grpc: OtlpGrpc | None = request.app.state.otlp_grpc
    with db.read() as session:
        hour = arming.charged_within(session, arming.HOUR, now)
        day = arming.charged_within(session, arming.DAY, now)
        jumped = halts.jumped(session, now)
        not_signed = chain_check.check(session, db.keys).wrong
    return Status(
        **engine_status(engine, now),
        **(over_grpc.status if over_grpc else {}),
        hour=Budget(charged=hour, limit=limits.members_per_hour),
        day=Budget(charged=day, limit=limits.members_per_day),
        clock_jumped=jumped,
        maintenance=list(map(MaintenanceView.of, engine.scheduler.state.windows)),
        not_signed=not_signed or None,
        decoding=machine_code.way(),
    )


@router.post("/halt")
async def halt(
    engine: PerhapsRunning,
    relay: Relaying,
    db: Db,
    caller: Operator,
    why: PerhapsReason = UNSAID,
) -> Disarmed:
    """Disarm everything at once; nothing starts again before `resume`. It needs no body.

    What is halted already stays so, for both reasons. Any process can do this, also while none
    leads. A leader elsewhere disarms within a second; the edges that this process serves are told
    at once.
    """
    now, on_record = clock.now(), True
    if engine is not None:
        disarmed = engine.board.armed()
        try:
            engine.scheduler.switch.halt(why.reason, caller.name, now)
        except Exception:  # noqa: BLE001 - whatever it is: it holds here, and the scheduler writes it later
            _log.exception("halted, and that cannot be put on record yet")
            on_record = False
        return Disarmed(
            halted=engine.scheduler.state.halted, disarmed=disarmed, on_record=on_record
        )
    relay.halt()
    with db.change(now, caller.name) as change:
        halted = halts.set_halted(change, why.reason)
    return Disarmed(halted=halted, disarmed=[], on_record=True)


@router.post("/resume")
async def resume(engine: Running, caller: Operator) -> Halt:
    """Let experiments start again."""
    engine.scheduler.switch.resume(caller.name, clock.now())
    return Halt(halted=engine.scheduler.state.halted)


@router.post("/maintenance", status_code=201)
async def open_maintenance(
    new: NewMaintenance, engine: Running, caller: Operator
) -> MaintenanceView:
    """Open a maintenance window: whatever touches it pauses, and it ends by itself."""
    now = clock.now()
    window = Maintenance(
        id=secrets.token_hex(6),
        owner=new.owner or caller.name,
        reason=new.reason,
        down=tuple(new.down),
        opened_at=now,
        until=now + new.seconds,
    )
    engine.scheduler.commands.open_maintenance(window, caller.name, now)
    return MaintenanceView.of(window)


@router.get("/maintenance")
async def maintenance(
    db: Db,
    _caller: Viewer,
    links: Links,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[MaintenanceView]:
    """List maintenance windows, newest first, those that are over as well."""
    with db.read() as session:
        return page(
            session,
            select(MaintenanceRow),
            MaintenanceRow.opened_at,
            MaintenanceRow.id,
            cursor,
            limit,
        ).answer(links, lambda row: MaintenanceView.of(window_of(row)))


@router.get("/maintenance/gate")
async def gate(
    engine: Running,
    db: Db,
    _caller: Viewer,
    down: Down,
    spare: Annotated[
        int, Query(ge=0, le=1, description="Failures to be survived on top of the step.")
    ] = 1,
) -> GateView:
    """Return whether this may be taken down now, or would leave a class one failure from pain.

    By what is known, and by how things are: what fails now counts as down.
    """
    known = [await knowledge_beside(db, each) for each in _classes(engine, None)]
    current_state = await engine.current_state(clock.now())
    windows = list(engine.scheduler.state.windows)
    return GateView.of(await asyncio.to_thread(gate_of, down, windows, known, spare, current_state))


@router.post("/maintenance/{window_id}/close")
async def close_maintenance(window_id: Id, engine: Running, caller: Operator) -> MaintenanceView:
    """Close a maintenance window before its time."""
    return MaintenanceView.of(
        engine.scheduler.commands.close_maintenance(window_id, caller.name, clock.now())
    )


@router.get("/maintenance/{window_id}/watch")
async def watch(window_id: Id, engine: Running, db: Db, _caller: Viewer) -> StepView:
    """Show how those fare that a window touches, since it was opened.

    And what fails now besides what the window names. Who suffers is found out by a sequential
    test, as for bystanders of an experiment.
    """
    now, state = clock.now(), engine.scheduler.state
    with db.read() as session:
        window = window_by_id(session, window_id)
    step = state.steps.of(window)
    signs = await engine.signs(now)
    return StepView(
        window=MaintenanceView.of(window),
        open=window.active(now),
        classes=[WatchedClass.of(name, each) for name, each in step.classes.items()],
        suffers=step.suffers() + [reason for reason in [state.breach] if reason],
        signs=[SignView.of(sign) for sign in (*signs.failing, *signs.late) if step.beside(sign)],
    )


@router.get("/whatif")
async def whatif(
    engine: Running,
    db: Db,
    _caller: Viewer,
    down: Down,
    request_class: Annotated[
        Filter, Query(description="A class or a pattern; null: every class.")
    ] = None,
) -> list[WhatIfView]:
    """List the single further failures that would hurt now with these down, by the evidence
    alone."""
    answers = []
    for known in _classes(engine, request_class):
        knowledge = await knowledge_beside(db, known)
        answer = await asyncio.to_thread(what_if, knowledge, down)
        if answer is not None:
            answers.append(WhatIfView.of(answer))
    return answers


@router.get("/audit")
async def audit(
    db: Db,
    _caller: Viewer,
    links: Links,
    cursor: Cursor = None,
    limit: Limit = 50,
    subject: Annotated[Filter, Query(description="Only what was done to this id.")] = None,
) -> Page[AuditView]:
    """List who did what, to what, why and when; newest first."""
    query = select(AuditRow)
    if subject is not None:
        query = query.where(AuditRow.subject == subject)
    with db.read() as session:
        found = page(session, query, AuditRow.at, AuditRow.id, cursor, limit)
        shown = {row.id: row for row in audited(session, found.items)}
    return found.answer(links, lambda row: shown[row.id])


def _classes(engine: Engine, pattern: str | None) -> list[KnownClass]:
    """Find the classes that a name or pattern asks for, in order of their names."""
    wanted = None if pattern is None else (pattern,)
    return [
        known
        for name, known in sorted(engine.catalogue.classes.items())
        if wanted is None or matching(wanted, [name]) is not None
    ]
