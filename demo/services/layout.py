"""layout: which rows a home screen has, and in what order, per kind of device."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ldfi import fit
from ldfi.demo.cache import Cache
from ldfi.demo.fallback import within

STANDARD = ["continue", "playlist", "recommended", "watched"]

_templates: Cache[list[str]] = Cache("templates", seconds=3600.0)
for _device in ("tv", "phone", "tablet"):
    _templates.put(_device, STANDARD)


async def layout(request: Request) -> Response:
    """List the rows for one kind of device."""
    device = request.query_params.get("device", "tv")
    rows = await within(_templates.get(device), None) or STANDARD
    rows = await within(personal_order(rows, request.query_params.get("member", "")), rows)
    return JSONResponse({"rows": rows})


@fit.point("function", "personal_order")
async def personal_order(rows: list[str], member: str) -> list[str]:
    """Put their list first for some members, who look at it first."""
    return sorted(rows, key=lambda row: row != "playlist") if member.endswith("7") else rows


routes = [Route("/layout", layout)]
