"""What is missing until anything can be tried, as ``ldfi doctor`` says it, from what the service
itself knows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ldfi.analysis.words import length
from ldfi.dashboards.words import age
from ldfi.experiments.api.class_view import ClassView
from ldfi.experiments.api.forecast_view import ForecastView
from ldfi.experiments.api.new_campaign import NewCampaign
from ldfi.experiments.api.otlp_grpc import OtlpGrpc
from ldfi.experiments.api.service import forecast_of
from ldfi.experiments.queries.diagnosis import (
    SILENT,
    Checkup,
    of_classes,
    of_status,
    of_traces,
)
from ldfi.experiments.queries.process_environment import as_shell, blocks
from ldfi.experiments.scheduler import metrics
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.scheduler.engine_status import engine_status
from ldfi.experiments.telemetry import exposition

FILE: Final = Path("ldfi.env")
"""Where `ldfi init` and `ldfi serve` write keys and tokens by default."""


@dataclass(frozen=True, slots=True)
class Missing:
    """``checkups``: what was looked at, what is to be mended first. ``lines``: for the shells in
    which services and the edge are started; they hold no secret."""

    checkups: tuple[Checkup, ...]
    lines: str


def why_nothing_can_be_tried(engine: Engine, edges: int, now: float) -> str:
    """Return why no campaign could inject anything now; empty where one could."""
    classes = engine.catalogue.classes.values()
    if not classes:
        return "no request class is known yet" if engine.spans else "no traffic arrives"
    if not edges and engine.board.fleet.met:
        return "no edge asks for rules"
    if not edges:
        ago = length(now - engine.began_at)
        return f"no edge has asked since this service started, {ago} ago"
    silent = now - max(each.last_seen for each in classes)
    return f"no request came in for {age(silent)}" if silent >= SILENT else ""


def missing(engine: Engine, over_grpc: OtlpGrpc | None, url: str, now: float) -> Missing:
    """Look at all that ``ldfi doctor`` looks at. ``url``: of this service, as services reach it."""
    found = list(_looked_at(engine, over_grpc, now))
    found.sort(key=lambda each: (each.well is True, each.well is None))
    return Missing(tuple(found), as_shell(FILE, blocks(url), serving=False))


def _looked_at(engine: Engine, over_grpc: OtlpGrpc | None, now: float) -> Iterator[Checkup]:
    state = engine.scheduler.state
    arrived = over_grpc.status if over_grpc else {}
    yield from of_status({**engine_status(engine, now), **arrived})
    exposed = exposition.text(metrics.of_engine(engine, now)).decode()
    yield from of_traces(exposed, engine.drops())
    asked = NewCampaign.model_validate({})
    forecast = ForecastView.of(forecast_of(engine, asked.definition(), asked))
    classes = engine.catalogue.classes.values()
    views = [ClassView.of(each, now, state.injectors).model_dump(mode="json") for each in classes]
    yield from of_classes(views, forecast.model_dump(mode="json"), now)
