"""Campaigns, findings and experiments by what they are called: one question for all three."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import (
    ColumnElement,
    Select,
    String,
    and_,
    cast,
    func,
    literal,
    or_,
    select,
    union_all,
)
from sqlalchemy.orm import Session

from ldfi.experiments.store.schema import CampaignRow, ExperimentRow, FindingRow

What = Literal["finding", "campaign", "experiment"]
_NOTHING: Final = "[]"


@dataclass(frozen=True, slots=True)
class Term:
    """A word of what somebody looks for, in small letters. ``kinds``: of faults that are said
    with it. ``points``: those that reach something of that name, which theirs does not say.
    ``classes``: request classes that people call so."""

    text: str
    kinds: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Named:
    """One that was found. ``name``: of a campaign; else of the request class. ``at``: Unix seconds,
    when it was found or made."""

    what: What
    id: str
    name: str
    faults: tuple[str, ...]
    state: str
    at: float


def named(session: Session, words: Sequence[Term], most: int) -> list[Named]:
    """Find the newest ``most`` of each, the newest first, in which every word stands: in the name,
    the failures or the state, or at the beginning of the id."""
    if not words:
        return []
    rows = session.execute(
        union_all(
            *(
                select(each.limit(most).subquery())
                for each in (_findings(words), _campaigns(words), _experiments(words))
            )
        )
    )
    found = [
        Named(what, id_, name, tuple(json.loads(faults)), state, at)
        for what, id_, name, faults, state, at in rows
    ]
    return sorted(found, key=lambda each: each.at, reverse=True)


def _findings(words: Sequence[Term]) -> Select[Any]:
    faults, row = cast(FindingRow.faults, String), FindingRow
    columns = (literal("finding"), row.id, row.request_class, faults, row.state, row.found_at)
    query = select(*columns).where(_every(words, row.id, row.request_class, row.state, faults))
    return query.order_by(row.found_at.desc())


def _campaigns(words: Sequence[Term]) -> Select[Any]:
    row = CampaignRow
    columns = (literal("campaign"), row.id, row.name, literal(_NOTHING), row.state, row.created_at)
    query = select(*columns).where(_every(words, row.id, row.name, row.state))
    return query.order_by(row.created_at.desc())


def _experiments(words: Sequence[Term]) -> Select[Any]:
    faults, row = cast(ExperimentRow.hypothesis, String), ExperimentRow
    state = func.coalesce(row.verdict, row.state)
    columns = (literal("experiment"), row.id, row.request_class, faults, state, row.created_at)
    query = select(*columns).where(_every(words, row.id, row.request_class, state, faults))
    return query.order_by(row.created_at.desc())


def _every(
    words: Sequence[Term],
    id_: Any,
    name: Any,
    state: Any,
    faults: Any | None = None,
) -> ColumnElement[bool]:
    return and_(*(_stands(word, id_, name, state, faults) for word in words))


def _stands(word: Term, id_: Any, name: Any, state: Any, faults: Any | None) -> ColumnElement[bool]:
    """Return whether a word stands anywhere. Failures are kept as JSON, so it is looked for as that
    writes it."""
    places = [
        id_.startswith(word.text, autoescape=True),
        name.icontains(word.text, autoescape=True),
        state.istartswith(word.text, autoescape=True),
    ]
    if faults is not None:
        looked_for = [json.dumps(word.text)[1:-1]]
        looked_for += [f'"{kind}{after}' for kind in word.kinds for after in "@:"]
        looked_for += [f"{json.dumps('@' + point)[1:]}" for point in word.points]
        places += [faults.icontains(each, autoescape=True) for each in looked_for]
        places += [name.in_(word.classes)] if word.classes else []
    return or_(*places)
