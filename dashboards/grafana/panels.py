"""The three kinds of panels that our dashboards are made of: a number, lines, states over time.

A thin choice of what Grafana offers, so that all panels look alike. Every panel says in a sentence
what it means; Grafana shows it at the (i) beside the title.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from grafana_foundation_sdk.builders import common, prometheus, stat, statetimeline, timeseries
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import common as shapes
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import units

SOURCE: Final = shapes.DataSourceRef(type_val="prometheus", uid="${source}")
"""The data source chosen at the top of the dashboard."""

HEIGHT: Final = 7
NUMBER_HEIGHT: Final = 4

GREEN, ORANGE, RED, GREY, BLUE = "green", "orange", "red", "#8e8e8e", "blue"
SECONDS, SHARE, PLAIN, PER_SECOND, BYTES = units.Seconds, units.PercentUnit, "short", "cps", "bytes"

Levels = Sequence[tuple[float, str]]
"""From which value on which colour is shown; below the first it is green."""


@dataclass(frozen=True, slots=True)
class Query:
    """PromQL, and how its series are called: ``{{label}}`` is the value of a label."""

    expr: str
    name: str = ""


def number(
    title: str,
    meaning: str,
    expr: str,
    *,
    unit: str = PLAIN,
    levels: Levels = (),
    words: Mapping[int, tuple[str, str]] | None = None,
    width: int = 3,
) -> stat.Panel:
    """Show one figure as it is now. ``words``: text and colour to show in place of some values."""
    panel = (
        stat.Panel()
        .title(title)
        .description(meaning)
        .datasource(SOURCE)
        .height(NUMBER_HEIGHT)
        .span(width)
        .unit(unit)
        .no_value("unknown")
        .color_mode(shapes.BigValueColorMode.VALUE)
        .graph_mode(shapes.BigValueGraphMode.NONE if words else shapes.BigValueGraphMode.AREA)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .thresholds(_thresholds(levels))
        .with_target(_target(0, Query(expr)))
    )
    return panel.mappings([_mapping(words)]) if words else panel


def lines(
    title: str,
    meaning: str,
    *queries: Query,
    unit: str = PLAIN,
    colours: Mapping[str, str] | None = None,
    stacked: bool = False,
    width: int = 8,
) -> timeseries.Panel:
    """Draw series over time. ``colours``: of series, by name. ``stacked``: their sum is a figure
    too."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(meaning)
        .datasource(SOURCE)
        .height(HEIGHT)
        .span(width)
        .unit(unit)
        .min(0)
        .line_width(1)
        .fill_opacity(40 if stacked else 8)
        .show_points(shapes.VisibilityMode.NEVER)
        .legend(
            common.VizLegendOptions()
            .show_legend(True)
            .display_mode(shapes.LegendDisplayMode.LIST)
            .placement(shapes.LegendPlacement.BOTTOM)
        )
        .tooltip(
            common.VizTooltipOptions()
            .mode(shapes.TooltipDisplayMode.MULTI)
            .sort(shapes.SortOrder.DESCENDING)
        )
    )
    if stacked:
        panel.stacking(common.StackingConfig().mode(shapes.StackingMode.NORMAL))
    for at, query in enumerate(queries):
        panel.with_target(_target(at, query))
    for name, colour in (colours or {}).items():
        panel.override_by_name(name, [_fixed(colour)])
    return panel


def states(
    title: str,
    meaning: str,
    *queries: Query,
    words: Mapping[int, tuple[str, str]],
    width: int = 12,
) -> statetimeline.Panel:
    """Show when which state was: one bar for each query, with a text and a colour for each
    value."""
    panel = (
        statetimeline.Panel()
        .title(title)
        .description(meaning)
        .datasource(SOURCE)
        .height(HEIGHT)
        .span(width)
        .show_value(shapes.VisibilityMode.NEVER)
        .merge_values(True)
        .mappings([_mapping(words)])
        .thresholds(_thresholds(()))
        .legend(
            common.VizLegendOptions()
            .show_legend(True)
            .display_mode(shapes.LegendDisplayMode.LIST)
            .placement(shapes.LegendPlacement.BOTTOM)
        )
    )
    for at, query in enumerate(queries):
        panel.with_target(_target(at, query))
    return panel


def _target(at: int, query: Query) -> prometheus.Dataquery:
    target = prometheus.Dataquery().ref_id(chr(ord("A") + at)).datasource(SOURCE)
    return target.expr(query.expr).legend_format(query.name).range()


def _thresholds(levels: Levels) -> build.ThresholdsConfig:
    steps = [model.Threshold(None, GREEN), *(model.Threshold(*level) for level in levels)]
    return build.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps)


def _mapping(words: Mapping[int, tuple[str, str]]) -> model.ValueMap:
    results = {
        str(value): model.ValueMappingResult(text=text, color=colour, index=at)
        for at, (value, (text, colour)) in enumerate(words.items())
    }
    return model.ValueMap(results)


def _fixed(colour: str) -> model.DynamicConfigValue:
    return model.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})
