"""Long lists, page by page.

A cursor names the last item of a page by what the list is ordered by: a column (a time, mostly) and
the id. What is added meanwhile moves nothing, as it would with page numbers. To callers a cursor is
opaque. It is checked, not signed: all it can say is where in a list one may see anyway to go on.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Depends, Query, Request, Response
from pydantic import BaseModel, Field, computed_field
from pydantic.json_schema import SkipJsonSchema
from sqlalchemy import Select, tuple_
from sqlalchemy.orm import InstrumentedAttribute, Session

from ldfi.experiments.api.problems import Problem

MAX_LIMIT = 200
DEFAULT_LIMIT = 50
_MAX_CURSOR = 1024
_BIGGEST = 2**63 - 1

Item = TypeVar("Item")
Row = TypeVar("Row")


class Page(BaseModel, Generic[Item]):
    """Part of a list. ``cursor``: where the following page begins; null when this is the last."""

    items: list[Item] = Field(description="The items of this page, in the order of the list.")
    cursor: Annotated[
        str | None,
        Field(
            description="To be sent as `cursor` for the following page; null: this is the last.",
            examples=["WyJhdWRpdCIsMTcwMDAwMDAwMC4wLDQyXQ"],
        ),
    ] = None

    @computed_field(description="Old name of `cursor`.", json_schema_extra={"deprecated": True})  # type: ignore[prop-decorator]
    @property
    def next(self) -> str | None:
        """Say the same by its old name."""
        return self.cursor


Cursor = Annotated[
    str | SkipJsonSchema[None],
    Query(max_length=_MAX_CURSOR, description="`cursor` of the page before."),
]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="How many items at most.")]


class LinkHeader:
    """A dependency: the Link header (RFC 8288), which names the next page for programs."""

    def __init__(self, request: Request, response: Response) -> None:
        self._url = request.url
        self._response = response

    def following(self, cursor: str) -> None:
        """Say where the list goes on: the same request, filters and all, with this cursor."""
        url = self._url.include_query_params(cursor=cursor)
        self._response.headers["Link"] = f'<{url.path}?{url.query}>; rel="next"'


Links = Annotated[LinkHeader, Depends()]


@dataclass(frozen=True, slots=True)
class Rows(Generic[Row]):
    """The rows of one page, and the cursor of the next."""

    items: list[Row]
    next: str | None

    def answer(self, links: LinkHeader, view: Callable[[Row], Item]) -> Page[Item]:
        """Show the page as callers see it, with its Link header."""
        if self.next is not None:
            links.following(self.next)
        return Page(items=[view(row) for row in self.items], cursor=self.next)


def page(
    session: Session,
    query: Select[tuple[Row]],
    order: InstrumentedAttribute[Any],
    key: InstrumentedAttribute[Any],
    cursor: str | None = None,
    limit: int = DEFAULT_LIMIT,
    *,
    newest_first: bool = True,
) -> Rows[Row]:
    """Read one page of ``query`` by ``order`` and, among equals, ``key``.

    Neither column may be NULL, and both together must be unique. Raises Problem 422 for a cursor
    that is not of this list.
    """
    place = tuple_(order, key)
    if cursor is not None:
        last = tuple_(*_decoded(cursor, order, key))
        query = query.where(place < last if newest_first else place > last)
    by = (order.desc(), key.desc()) if newest_first else (order, key)
    rows = list(session.scalars(query.order_by(*by).limit(limit + 1)))
    if len(rows) <= limit:
        return Rows(rows, None)
    return Rows(rows[:limit], _encoded(order, key, rows[limit - 1]))


def _encoded(order: InstrumentedAttribute[Any], key: InstrumentedAttribute[Any], row: Any) -> str:
    place = [str(order), getattr(row, order.key), getattr(row, key.key)]
    text = json.dumps(place, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def _decoded(
    cursor: str, order: InstrumentedAttribute[Any], key: InstrumentedAttribute[Any]
) -> tuple[Any, Any]:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        name, *place = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, TypeError, RecursionError) as error:
        raise _invalid() from error
    columns = (order, key)
    if name != str(order) or len(place) != 2 or not all(map(_fits, place, columns)):
        raise _invalid()
    return place[0], place[1]


def _fits(value: object, column: InstrumentedAttribute[Any]) -> bool:
    """Return whether the database can compare ``value`` with this column."""
    if type(value) is not column.type.python_type:
        return False
    if isinstance(value, str):
        return value.isprintable()  # no NUL, no lone surrogate
    return isinstance(value, (int, float)) and math.isfinite(value) and abs(value) <= _BIGGEST


def _invalid() -> Problem:
    said = "the cursor is not from this list; leave it out to start anew"
    return Problem(422, "invalid-cursor", said, at="query/cursor")
