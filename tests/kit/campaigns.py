"""Campaigns begun as the API begins them, and what is on record of their experiments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import select

from ldfi.experiments.domain.campaign.campaign import Campaign, Definition
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import ExperimentRow
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.predicate import Predicate
from ldfi.testing.world import QUICK, World

SWIFT = Settings(kinds=("error",), min_traffic=50, settle=1.0, follow=0.0, apart=0.0)
"""Settings of errors, under which nothing is waited for."""


def start(world: World, settings: Settings = QUICK, **more: Any) -> Campaign:
    """Begin a campaign; ``more`` is of its definition."""
    definition = replace(Definition(settings), **more)
    return world.engine.scheduler.commands.start(definition, "operator", world.now)


def armed(world: World, settings: Settings = QUICK, **more: Any) -> tuple[Campaign, Experiment]:
    """Begin a campaign and let traffic go on until something is armed: one experiment."""
    campaign = start(world, settings, **more)
    world.until_armed()
    (experiment,) = campaign.active()
    return campaign, experiment


def an_experiment(name: str, request_class: str, point: str, **more: Any) -> Experiment:
    """Make an experiment on everybody with an error at one point."""
    fault = Fault(point, "error")
    given = {"predicate": Predicate(), "settings": QUICK, **more}
    predicate, settings = given.pop("predicate"), given.pop("settings")
    hypothesis = frozenset({str(fault)})
    return Experiment(name, request_class, predicate, hypothesis, (fault,), settings, **given)


def experiments_of(database: Database) -> list[ExperimentRow]:
    """Look up all experiments, the oldest first."""
    with database.read() as session:
        query = select(ExperimentRow).order_by(ExperimentRow.created_at, ExperimentRow.id)
        return list(session.scalars(query))
