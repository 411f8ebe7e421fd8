"""titles: names and lengths of titles, from a cache, else read anew, else bare numbers."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ldfi import fit
from ldfi.demo.cache import Cache
from ldfi.demo.catalogue import Title, skeleton, title
from ldfi.demo.fallback import within

_catalogue: Cache[Title] = Cache("catalogue", seconds=2.0)


async def one(request: Request) -> Response:
    """Show one title."""
    return JSONResponse((await look_up([request.path_params["number"]]))[0])


async def several(request: Request) -> Response:
    """Show the titles asked for by ``ids``, numbers separated by commas."""
    numbers = [int(number) for number in request.query_params["ids"].split(",")]
    return JSONResponse({"titles": await look_up(numbers)})


async def look_up(numbers: list[int]) -> list[Title]:
    """Look up the titles, in the order asked for."""
    key = ",".join(map(str, numbers))
    cached = await within(_catalogue.get(key), None)
    if cached is not None:
        found: list[Title] = cached["titles"]
        return found
    read = await within(read_catalogue(numbers), None)
    if read is None:
        return [skeleton(number) for number in numbers]
    _catalogue.put(key, {"titles": read})
    return read


@fit.point("function", "read_catalogue")
async def read_catalogue(numbers: list[int]) -> list[Title] | None:
    """Read from the catalogue itself."""
    return [title(number) for number in numbers]


routes = [Route("/titles", several), Route("/titles/{number:int}", one)]
