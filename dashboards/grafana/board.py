"""A dashboard out of rows of panels, and its JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model

from ldfi.dashboards.grafana.annotations import ANNOTATIONS

TAG: Final = "ldfi"
_FROM, _TO = "${__from:date:iso}", "${__to:date:iso}"

PAGES: Final = "http://localhost:8600"
"""Where the pages are, until somebody says so at the top of a dashboard."""

Rows = Mapping[str, Sequence[Builder[model.Panel]]]
"""Titles of rows, and what is in each."""


def board(
    uid: str, title: str, meaning: str, since: str, rows: Rows, *, folded: bool = False
) -> model.Dashboard:
    """Make a dashboard that shows everything ``since``, say ``now-6h``. ``folded``: all rows but
    the first, until somebody opens them."""
    made = (
        build.Dashboard(title)
        .uid(uid)
        .description(meaning)
        .tags([TAG])
        .readonly()
        .time(since, "now")
        .refresh("10s")
        .timezone("browser")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .link(_siblings())
        .link(_page("Was it us?", f"was-it-us?since={_FROM}&until={_TO}"))
        .link(_page("Pages", ""))
        .with_variable(build.DatasourceVariable("source").label("Prometheus").type("prometheus"))
        .with_variable(build.TextBoxVariable("pages").label("ldfi's pages").default_value(PAGES))
    )
    for annotation in ANNOTATIONS:
        made.annotation(annotation.build())
    for place, (name, panels) in enumerate(rows.items()):
        row = build.Row(name).collapsed(folded and place > 0)
        if folded and place:
            for panel in panels:
                row.with_panel(panel)
        made.with_row(row)
        for panel in () if folded and place else panels:
            made.with_panel(panel)
    built = made.build()
    for number, each in enumerate(panels_of(built), start=1):
        each.id_val = number
    return built


def panels_of(dashboard: model.Dashboard) -> Iterator[model.Panel | model.RowPanel]:
    """Go over rows and panels, those of rows that are folded included."""
    for each in dashboard.panels or []:
        yield each
        if isinstance(each, model.RowPanel):
            yield from each.panels


def as_json(dashboard: model.Dashboard) -> str:
    """Write it as Grafana provisions it."""
    return json.dumps(dashboard, cls=JSONEncoder, indent=1, sort_keys=True) + "\n"


def _page(title: str, path: str) -> build.DashboardLink:
    """Link to one of our own pages."""
    link = build.DashboardLink(title).type(model.DashboardLinkType.LINK)
    return link.url(f"${{pages}}/{path}").target_blank(True)


def _siblings() -> build.DashboardLink:
    """Link to our other dashboards, which show the same time then."""
    links = build.DashboardLink("ldfi").type(model.DashboardLinkType.DASHBOARDS).tags([TAG])
    return links.keep_time(True)
