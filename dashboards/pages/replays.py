"""Replays: versions that were measured, and such that were compared."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Request, Response
from sqlalchemy import select

from ldfi.dashboards.render import rendered
from ldfi.dashboards.route import PageRoute
from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.documents import Id
from ldfi.experiments.api.pagination import Cursor, page
from ldfi.experiments.api.service import Db
from ldfi.experiments.errors import NotFound
from ldfi.experiments.store.schema import ReplayRow

router = APIRouter(prefix="/replays", route_class=PageRoute)

METRICS: Final = ("success", "p50", "p95", "p99", "p99.9")


@router.get("")
async def listing(request: Request, db: Db, _caller: Viewer, cursor: Cursor = None) -> Response:
    """List them, newest first."""
    with db.read() as session:
        found = page(session, select(ReplayRow), ReplayRow.kept_at, ReplayRow.id, cursor)
    return rendered(request, "replays.html", found=found, versions=versions)


@router.get("/{replay_id}")
async def show(replay_id: Id, request: Request, db: Db, _caller: Viewer) -> Response:
    """Show one: a row for each metric of each class."""
    with db.read() as session:
        row = session.get(ReplayRow, replay_id)
        if row is None:
            raise NotFound(f"there is no replay {replay_id!r}")
    rows = [line for each in row.document["classes"] for line in _lines(each)]
    return rendered(request, "replay.html", row=row, versions=versions, rows=rows)


def versions(document: dict[str, Any]) -> str:
    """Name what was measured."""
    sides = [document.get(side) for side in ("old", "new", "target")]
    names = [str(each.get("name")) for each in sides if isinstance(each, dict)]
    return " → ".join(names) or "versions without a name"


def _lines(each: dict[str, Any]) -> list[dict[str, str]]:
    """Put one class in words, as far as it is as we write it."""
    metrics = each.get("metrics", {})
    lines = []
    for metric in METRICS:
        found = metrics.get(metric)
        line = {"class": str(each.get("class", "")), "metric": metric}
        if found is None:
            values = {
                "old": "",
                "new": _value(metric, each.get(metric)),
                "change": "",
                "verdict": "",
            }
        else:
            values = {
                "old": _value(metric, found["old"]),
                "new": _value(metric, found["new"]),
                "change": _change(found["change"]),
                "verdict": str(found["verdict"]),
            }
        lines.append({**line, **values})
    return lines


def _value(metric: str, interval: list[float | None] | None) -> str:
    if not interval or interval[0] is None:
        return "no answer"
    value = interval[0]
    return f"{100 * value:.2f} %" if metric == "success" else f"{1000 * value:.4g} ms"


def _change(interval: list[float | None] | None) -> str:
    if not interval or interval[0] is None:
        return ""
    low, high = ("∞" if each is None else f"{100 * each:+.1f}" for each in interval[1:])
    return f"{100 * interval[0]:+.1f} % ({low} to {high})"
