"""api: the gateway that devices talk to. One module per class of request."""

from __future__ import annotations

from starlette.routing import Route

from ldfi.demo import repairs
from ldfi.demo.services.api.boot import boot
from ldfi.demo.services.api.play import play
from ldfi.demo.services.api.search import search

routes = [
    Route("/boot", boot),
    Route("/play/{title_id:int}", play),
    Route("/search", search),
    *repairs.routes,
]
