"""Outcomes that somebody else has counted: PromQL counters, one pair for each arm.

For sites whose truth is a business metric ("orders completed") rather than what devices report.
Asked every other second of the experiments that want it; what cannot be asked is asked again later,
and an experiment of which nothing was heard ends inconclusive.
"""

from __future__ import annotations

import asyncio
import logging
import time

from ldfi.experiments.control.state import State
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.errors import ExperimentsError
from ldfi.experiments.telemetry.prometheus import Prometheus
from ldfi.fit.context import Arm

_log = logging.getLogger("ldfi")

LOOK_SECONDS = 2.0
ARMS: tuple[Arm, ...] = ("control", "treatment")


def filled_in(promql: str, experiment: str, arm: Arm) -> str:
    """Fill in an expression for one arm of one experiment. Ids hold nothing that PromQL minds."""
    return promql.replace("$experiment", experiment).replace("$arm", arm)


async def ask(prometheus: Prometheus, experiment: Experiment) -> None:
    """Ask once for both arms of an experiment. Raises ExperimentsError."""
    wanted = experiment.settings.promql
    if wanted is None:
        return
    for arm in ARMS:
        total = await prometheus.query(filled_in(wanted.total, experiment.id, arm))
        failures = await prometheus.query(filled_in(wanted.failures, experiment.id, arm))
        experiment.count(arm, int(total or 0), int(failures or 0))


async def watch(prometheus: Prometheus, state: State) -> None:
    """Keep every active experiment that wants it informed, until cancelled."""
    while True:
        started = time.monotonic()
        for _, experiment in list(state.active()):
            try:
                await ask(prometheus, experiment)
            except ExperimentsError as error:
                _log.warning("no counts for experiment %s: %s", experiment.id, error)
        await asyncio.sleep(max(0.0, LOOK_SECONDS - (time.monotonic() - started)))
