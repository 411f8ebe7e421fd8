"""The namespaces beside the default one, for the admins of the default one."""

from __future__ import annotations

from typing import Annotated, ClassVar

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from ldfi.errors import Conflict, NotFound
from ldfi.experiments.api.auth import Admin
from ldfi.experiments.api.documents import AsRead
from ldfi.experiments.api.idempotency import IdempotentRoute
from ldfi.experiments.api.service import Db
from ldfi.experiments.store import namespaces
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.namespaces import Namespace
from ldfi.experiments.telemetry import clock

router = APIRouter(prefix="/api/v1/namespaces", tags=["namespaces"], route_class=IdempotentRoute)

Least = Annotated[int, Field(ge=0, le=10**9)]


class NewNamespace(AsRead):
    """What a namespace is called, and what it may take of the limits of all. Null: all of it.

    One as it is listed is taken as well, and stays what it is.
    """

    filled_in: ClassVar = frozenset({"created_by", "created_at"})
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "checkout", "members_per_day": 500}]}
    )

    name: Annotated[
        str,
        Field(
            description="Its name, which tokens, metrics and answers carry.",
            max_length=30,
            pattern=f"^{namespaces.PATTERN}$",
        ),
    ]
    max_concurrent: Least | None = Field(None, description="Experiments at once.")
    members_per_hour: Least | None = Field(None, description="Members exposed within an hour.")
    members_per_day: Least | None = Field(None, description="Members exposed within a day.")


class NamespaceView(BaseModel):
    """A namespace beside the default one."""

    name: str = Field(
        description="Its name, which tokens and answers carry.", examples=["checkout"]
    )
    created_by: str = Field(description="The name of the token that made it.", examples=["kim"])
    created_at: float = Field(
        description="When it was made (Unix seconds).", examples=[1767225600.0]
    )
    max_concurrent: int | None = Field(
        description="Experiments that it may run at once; null: as many as all namespaces together."
    )
    members_per_hour: int | None = Field(
        description="Members that its experiments may be charged with within an hour; null: as "
        "many as all together."
    )
    members_per_day: int | None = Field(
        description="The same within a day; null: as many as all together."
    )

    @classmethod
    def of(cls, namespace: Namespace) -> NamespaceView:
        """Show one."""
        return cls(
            name=namespace.name,
            created_by=namespace.created_by,
            created_at=namespace.created_at,
            max_concurrent=namespace.max_concurrent,
            members_per_hour=namespace.members_per_hour,
            members_per_day=namespace.members_per_day,
        )


@router.post("")
async def put(new: NewNamespace, request: Request, db: Db, caller: Admin) -> NamespaceView:
    """Make a namespace, or change what one may take. Tokens for it are made in it."""
    _check_global(db)
    if not request.app.state.namespaces.apart:
        raise Conflict("a database in memory has one namespace only: use a file, or PostgreSQL")
    made = await run_in_threadpool(_put, db, new, caller.name)
    await request.app.state.namespaces.look()
    return NamespaceView.of(made)


@router.get("")
def listing(db: Db, _caller: Admin) -> list[NamespaceView]:
    """List the namespaces beside the default one, by name."""
    _check_global(db)
    with db.read() as session:
        return list(map(NamespaceView.of, namespaces.listed(session)))


def _put(db: Database, new: NewNamespace, who: str) -> Namespace:
    with db.change(clock.now(), who) as change:
        db.lock(change)
        return namespaces.put(
            change, new.name, new.max_concurrent, new.members_per_hour, new.members_per_day
        )


def _check_global(db: Database) -> None:
    if db.namespace:
        raise NotFound("there are no namespaces within a namespace")
