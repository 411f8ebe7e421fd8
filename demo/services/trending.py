"""trending: what everybody watches. Stands in wherever something personal cannot be had."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ldfi.demo.cache import Cache
from ldfi.demo.catalogue import Title, pick, title
from ldfi.demo.fallback import within

OF_ALL_TIME = [title(number) for number in pick("all time", count=6)]

_top: Cache[list[Title]] = Cache("top", seconds=3600.0)
_top.put("now", [title(number) for number in pick("this week", count=6)])


async def top(_: Request) -> Response:
    """Show the titles of the week, else those of all time."""
    return JSONResponse({"titles": await within(_top.get("now"), None) or OF_ALL_TIME})


routes = [Route("/top", top)]
