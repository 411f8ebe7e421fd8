"""Every page there is, by the name of its screenshot, and where it is on a seeded service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote

from tests.dashboards.seeded import Seeded

Where = Callable[[Seeded], str]

OPEN: Final[Mapping[str, Where]] = {"login": lambda _: "/login"}
"""Pages for whoever is not logged in."""

PAGES: Final[Mapping[str, Where]] = {
    "now": lambda _: "/",
    "was-it-us": lambda _: "/was-it-us?since=2026-01-01T00:00:00Z&until=2100-01-01T00:00:00Z",
    "classes": lambda _: "/classes",
    "class": lambda _: f"/classes/{quote('GET /boot', safe='')}",
    "point": lambda _: (
        f"/point?request_class={quote('GET /boot', safe='')}"
        f"&point={quote('api>http:GET:layout/screens/*', safe='')}"
    ),
    "experiments": lambda _: "/experiments",
    "experiment": lambda known: f"/experiments/{known.experiments[-1]}",
    "findings": lambda _: "/findings",
    "finding": lambda known: f"/findings/{known.findings[-1]}",
    "certificates": lambda _: "/certificates",
    "certificate": lambda known: f"/certificates/{known.campaigns['nightly']}",
    "campaigns": lambda _: "/campaigns",
    "campaign": lambda known: f"/campaigns/{known.campaigns['nightly']}",
    "new-campaign": lambda _: "/campaigns/new",
    "replays": lambda _: "/replays",
    "replay": lambda known: f"/replays/{known.replays[-1]}",
    "calendar": lambda _: "/calendar",
    "map": lambda _: "/map",
    "map-down": lambda _: "/map?down=recordsdb",
    "maintenance": lambda _: "/maintenance",
    "audit": lambda _: "/audit",
    "tokens": lambda _: "/tokens",
    "halt": lambda _: "/halt",
    "search": lambda _: "/search?q=license",
}

FILES: Final[Mapping[str, Where]] = {
    "finding": lambda known: f"/findings/{known.findings[-1]}/file",
    "certificate": lambda known: f"/certificates/{known.campaigns['nightly']}/file",
}
"""Pages to be kept and sent around, which need no service."""

NO_PAGES: Final = {
    *("/live", "/now", "/search/found", "/experiments/{experiment_id}/now"),
    "/what-if",
}
"""Routes that give a stream of events, a part of a page, or lead to another."""
