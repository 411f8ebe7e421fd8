"""The service over a real database, whole or in part, and clients of it by role."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
from fastapi import APIRouter, FastAPI

from ldfi.experiments.api import problems
from ldfi.experiments.api.app import create_app
from ldfi.experiments.api.rate_limit import RateLimiter
from ldfi.experiments.cluster.service import Service
from ldfi.experiments.cluster.tokens import ROLES, Tokens
from ldfi.experiments.domain.campaign.campaign import Definition
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store.database import Database
from ldfi.testing.live_service import served
from ldfi.testing.world import World
from tests.kit.campaigns import SWIFT

GIVEN = {role: f"{role}-0123456789abcdef" for role in ROLES}


class Unlimited(RateLimiter):
    """Lets callers call as often as they like, as no person does."""

    def take(self, *_: object) -> None: ...


def application(
    database: Database, routers: Iterable[APIRouter] = (), tokens: Tokens | None = None
) -> FastAPI:
    """As the service has it, without the engine."""
    app = FastAPI()
    app.state.database = database
    app.state.tokens = tokens or Tokens(",".join(f"{r}:{t}" for r, t in GIVEN.items()), database)
    app.state.rate_limiter = RateLimiter()
    problems.install(app)
    for router in routers:
        app.include_router(router)
    return app


def service(url: str, **settings: Any) -> FastAPI:
    """The whole service over the database at ``url``, with a token for each role."""
    tokens = Tokens(",".join(f"{role}:{token}" for role, token in GIVEN.items()))
    return create_app(Service(tokens=tokens, database=url, **settings))


def live_through(url: str) -> None:
    """Give a database a past: classes, a campaign with its experiments and findings, and one that
    goes on."""
    db = Database(url)
    world = World(db, engine=Engine(db, now=time.time()))
    world.now = time.time() - 300
    scheduler = world.engine.scheduler
    asked = replace(SWIFT, treatment=0.3, control=0.3)
    scheduler.commands.start(Definition(asked, name="past"), "kim", world.now)
    world.steps(60)
    scheduler.commands.start(Definition(asked, name="present"), "kim", world.now)
    scheduler.shut_down("the test begins", world.now)
    db.close()


@contextmanager
def client_of(app: FastAPI, token: str | None = GIVEN["admin"]) -> Iterator[httpx.Client]:
    """A client of the application, over a real socket."""
    headers = {} if token is None else bearer(token)
    with (
        served(app) as url,
        httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=20) as client,
    ):
        yield client


def bearer(token: str) -> dict[str, str]:
    """The header that carries a token."""
    return {"authorization": f"Bearer {token}"}


def problem(response: httpx.Response) -> str:
    """The type of the problem that a response must be."""
    assert response.headers["content-type"] == problems.MEDIA_TYPE
    document = response.json()
    assert document["status"] == response.status_code
    assert document["detail"]
    return str(document["type"]).removeprefix(problems.TYPE)
