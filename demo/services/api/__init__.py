"""api: the gateway that devices talk to. One module per class of request."""

from __future__ import annotations

from starlette.routing import Route

from demo import repairs
from demo.services.api.boot import boot
from demo.services.api.play import play
from demo.services.api.search import search

routes = [
    Route("/boot", boot),
    Route("/play/{title_id:int}", play),
    Route("/search", search),
    *repairs.routes,
]
