"""The planted weaknesses, and the switch that repairs one of them while the demo runs.

    DEMO_REPAIRED=play-license,search-spelling python -m ldfi.demo
    curl -X POST http://GATEWAY/_demo/repair/play-license
    curl -X DELETE http://GATEWAY/_demo/repair/play-license

Every planted weakness is a decision of the gateway's code, so only the gateway asks.
"""

from __future__ import annotations

import os

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

VARIABLE = "DEMO_REPAIRED"

_repaired = set(filter(None, os.environ.get(VARIABLE, "").split(",")))


def repaired(weakness: str) -> bool:
    """Return whether the code should behave as if somebody had fixed this weakness."""
    return weakness in _repaired


async def repair(request: Request) -> Response:
    """Repair one weakness from now on; DELETE brings it back."""
    if request.method == "DELETE":
        _repaired.discard(request.path_params["weakness"])
    else:
        _repaired.add(request.path_params["weakness"])
    return JSONResponse({"repaired": sorted(_repaired)})


routes = [Route("/_demo/repair/{weakness}", repair, methods=["POST", "DELETE"])]
