"""``Idempotency-Key``: a request sent twice is done once.

After draft-ietf-httpapi-idempotency-key-header. A client that got no answer sends the same request
with the same key again and gets the answer of the first, marked ``Idempotent-Replayed: true``. The
key holds for one caller and for 24 hours; the body must be the same byte by byte.

An error is not kept: a change that fails is rolled back whole, so trying again is right. Should the
process die between a change and keeping its answer, the key is free after
:data:`ldfi.experiments.store.idempotency.ABANDONED` seconds, and the repetition is then done again:
that much cannot be known.

On a router it is one argument: ``APIRouter(route_class=IdempotentRoute)``.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from sqlalchemy.exc import IntegrityError
from starlette.concurrency import run_in_threadpool

from ldfi.experiments.api.auth import authenticate
from ldfi.experiments.api.problems import Problem
from ldfi.experiments.api.routes import CHANGING, GuardedRoute, Handler
from ldfi.experiments.cluster.tokens import Caller
from ldfi.experiments.store import idempotency as stored
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.idempotency import KeptAnswer, Slot, SlotClaim
from ldfi.experiments.telemetry import clock

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotent-Replayed"
FORGET_EVERY: Final = 3600.0
KEY_PATTERN: Final = r'^("[!#-~]{1,128}"|[!#-~]{1,128})$'
"""A string of the draft, in quotes, or the bare value that most clients send."""
_KEY = re.compile(r"[!#-~]{1,128}")
_KEPT_HEADERS = ("content-type", "location", "link", "deprecation")
_log = logging.getLogger(__name__)


class IdempotentRoute(GuardedRoute):
    """A route that honours the header where it changes something. Its answers must be whole."""

    def handler(self) -> Handler:
        """Wrap the route's own work so that it is done at most once per key."""
        handle = super().handler()

        async def handle_once(request: Request) -> Response:
            text = request.headers.get(HEADER)
            if text is None or request.method not in CHANGING:
                return await handle(request)
            caller = await authenticate(request)
            slot = Slot(caller.id, _key(text), await _fingerprint(request, caller))
            return await _once(request, slot, handle)

        return handle_once


async def _once(request: Request, slot: Slot, handle: Handler) -> Response:
    database: Database = request.app.state.database
    now = clock.now()
    await _forget_sometimes(request.app, database, now)
    claimed = await run_in_threadpool(_claim, database, slot, now)
    if isinstance(claimed, KeptAnswer):
        return _replayed(claimed)
    if claimed is SlotClaim.REUSED:
        raise Problem(422, "idempotency-key-reused", f"use a new {HEADER} for a new request")
    if claimed is SlotClaim.RUNNING:
        raise Problem(
            409,
            "idempotency-in-progress",
            "the first request is not done yet",
            {"Retry-After": "1"},
        )
    try:
        response = await handle(request)
    except Exception:
        await _quietly(_release, database, slot, now)
        raise
    answer = _answer(response)
    if answer is None:
        await _quietly(_release, database, slot, now)
    else:
        await _quietly(_complete, database, slot, now, answer)
    return response


async def _quietly(work: Callable[..., None], *arguments: Any) -> None:
    """Do work whose failure is only logged: what was done is done, and the answer stays what it
    is."""
    try:
        await run_in_threadpool(work, *arguments)
    except Exception:  # noqa: BLE001 - see above
        _log.exception("idempotency keys could not be settled; they will be later")


def _claim(database: Database, slot: Slot, now: float) -> KeptAnswer | SlotClaim:
    try:
        with database.change(now) as change:
            return stored.claim(change, slot)
    except IntegrityError:  # taken this very moment; now it can be seen
        with database.change(now) as change:
            return stored.claim(change, slot)


def _complete(database: Database, slot: Slot, claimed_at: float, answer: KeptAnswer) -> None:
    with database.change(claimed_at) as change:
        stored.complete(change, slot, claimed_at, answer)


def _release(database: Database, slot: Slot, claimed_at: float) -> None:
    with database.change(claimed_at) as change:
        stored.release(change, slot, claimed_at)


async def _forget_sometimes(app: FastAPI, database: Database, now: float) -> None:
    if now - getattr(app.state, "idempotency_forgotten_at", 0.0) >= FORGET_EVERY:
        app.state.idempotency_forgotten_at = now
        await _quietly(_forget, database, now)


def _forget(database: Database, now: float) -> None:
    with database.change(now) as change:
        stored.forget(change)


def _key(text: str) -> str:
    text = text.strip()
    bare = text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
    if not _KEY.fullmatch(bare):
        raise Problem(
            400,
            "invalid-idempotency-key",
            f"{HEADER} has 1 to 128 visible ASCII characters, such as a UUID",
        )
    return bare


async def _fingerprint(request: Request, caller: Caller) -> str:
    parts = (caller.role, request.method, request.url.path, request.url.query)
    digest = hashlib.sha256("\0".join((*parts, "")).encode())
    digest.update(await request.body())
    return digest.hexdigest()


def _answer(response: Response) -> KeptAnswer | None:
    """Choose what to keep of a response; None when it is an error, a stream, or no text."""
    body = getattr(response, "body", None)
    if body is None or response.status_code >= 400:
        return None
    headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
    try:
        return KeptAnswer(response.status_code, headers, bytes(body).decode())
    except UnicodeDecodeError:
        return None


def _replayed(answer: KeptAnswer) -> Response:
    return Response(answer.body, answer.status, {**answer.headers, REPLAYED: "true"})
