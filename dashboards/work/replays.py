"""Replays: versions that were measured, and such that were compared."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Request, Response
from sqlalchemy import select

from ldfi.dashboards.render import rendered
from ldfi.dashboards.route import PageRoute
from ldfi.errors import NotFound
from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.input_documents import Id
from ldfi.experiments.api.pagination import Cursor, page
from ldfi.experiments.api.service import Db
from ldfi.experiments.store.schema import ReplayRow

router = APIRouter(prefix="/replays", route_class=PageRoute)

METRICS: Final = ("success", "p50", "p95", "p99", "p99.9")


@router.get("")
async def listing(request: Request, db: Db, _caller: Viewer, cursor: Cursor = None) -> Response:
    """List them, newest first."""
    with db.read() as session:
        found = page(session, select(ReplayRow), ReplayRow.kept_at, ReplayRow.id, cursor)
    return rendered(request, "work/replays.html", found=found, versions=versions)


@router.get("/{replay_id}")
async def show(replay_id: Id, request: Request, db: Db, _caller: Viewer) -> Response:
    """Show one: a row for each metric of each class."""
    with db.read() as session:
        row = session.get(ReplayRow, replay_id)
        if row is None:
            raise NotFound(f"there is no replay {replay_id!r}")
    rows = [line for each in row.document["classes"] for line in _lines(each)]
    calls = _calls(row.document.get("calls"))
    return rendered(request, "work/replay.html", row=row, versions=versions, rows=rows, calls=calls)


def versions(document: dict[str, Any]) -> str:
    """Name what was measured."""
    sides = [document.get(side) for side in ("old", "new", "target")]
    names = [str(each.get("name")) for each in sides if isinstance(each, dict)]
    return " → ".join(names) or "versions without a name"


def _calls(changed: object) -> list[str]:
    listed = changed if isinstance(changed, list) else []
    known = [each for each in listed if isinstance(each, dict)]
    return [f"{each.get('class')}: {each.get('call')} is {each.get('change')}" for each in known]


def _lines(each: dict[str, Any]) -> list[dict[str, str]]:
    """Put one class in words. Whoever may keep results may keep others than ours: what is not as
    we write it is left out."""
    metrics = each.get("metrics")
    compared = metrics if isinstance(metrics, dict) else {}
    lines = []
    for metric in METRICS:
        found = compared.get(metric)
        if not isinstance(found, dict):
            found = {"new": each.get(metric)}
        lines.append(
            {
                "class": str(each.get("class", "")),
                "metric": metric,
                "old": _value(metric, found.get("old")),
                "new": _value(metric, found.get("new")),
                "change": _change(found.get("change")),
                "verdict": str(found.get("verdict", "")),
            }
        )
    return lines


def _value(metric: str, interval: object) -> str:
    ends = _ends(interval)
    if ends is None:
        return ""
    if ends[0] is None:
        return "no answer"
    return f"{100 * ends[0]:.2f} %" if metric == "success" else f"{1000 * ends[0]:.4g} ms"


def _change(interval: object) -> str:
    ends = _ends(interval)
    if ends is None or ends[0] is None:
        return ""
    low, high = ends[1:]
    if low is None or high is None:
        return f"{100 * ends[0]:+.1f} % (too few requests to say how sure)"
    return f"{100 * ends[0]:+.1f} % ({100 * low:+.1f} to {100 * high:+.1f})"


def _ends(interval: object) -> list[float | None] | None:
    if not isinstance(interval, list) or len(interval) != 3:
        return None
    if not all(each is None or isinstance(each, int | float) for each in interval):
        return None
    return interval
