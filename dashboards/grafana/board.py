"""A dashboard out of rows of panels, and its JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model

TAG: Final = "ldfi"

Rows = Mapping[str, Sequence[Builder[model.Panel]]]
"""Titles of rows, and what is in each."""


def board(uid: str, title: str, meaning: str, since: str, rows: Rows) -> model.Dashboard:
    """Make a dashboard that shows everything ``since``, say ``now-6h``."""
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
        .with_variable(build.DatasourceVariable("source").label("Prometheus").type("prometheus"))
    )
    for name, panels in rows.items():
        made.with_row(build.Row(name))
        for panel in panels:
            made.with_panel(panel)
    built = made.build()
    for number, each in enumerate(built.panels or [], start=1):
        each.id_val = number
    return built


def as_json(dashboard: model.Dashboard) -> str:
    """Write it as Grafana provisions it."""
    return json.dumps(dashboard, cls=JSONEncoder, indent=1, sort_keys=True) + "\n"


def _siblings() -> build.DashboardLink:
    """Link to our other dashboards, which show the same time then."""
    links = build.DashboardLink("ldfi").type(model.DashboardLinkType.DASHBOARDS).tags([TAG])
    return links.keep_time(True)
