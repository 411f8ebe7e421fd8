"""Outcomes that somebody else has counted: PromQL counters, one pair for each arm.

For sites whose truth is a business metric ("orders completed") rather than what devices report.
Asked every other second of the experiments that want it; what cannot be asked is asked again later,
and an experiment of which nothing was heard ends inconclusive.
"""

from __future__ import annotations

import asyncio
import logging
import time
from math import isfinite

from ldfi.errors import ExperimentsError, PrometheusError
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.judging.sequential_tests import Counts
from ldfi.experiments.scheduler.shared_state import State
from ldfi.experiments.telemetry.prometheus import Prometheus
from ldfi.fit.protocol.context import Arm

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
    found = [
        _count(await prometheus.query(asked), asked)
        for arm in ARMS
        for asked in (
            filled_in(wanted.total, experiment.id, arm),
            filled_in(wanted.failures, experiment.id, arm),
        )
    ]
    control, control_failed, treated, treated_failed = found
    failed = min(control_failed, control), min(treated_failed, treated)
    experiment.count(Counts(control, failed[0], treated, failed[1]))


def _count(value: float | None, promql: str) -> int:
    """Read a counter as it stands; 0 where there is no such series yet. Raises PrometheusError."""
    if value is None:
        return 0
    if not (isfinite(value) and value >= 0):
        raise PrometheusError(f"{promql} is {value}: it must count requests")
    return int(value)


async def watch(prometheus: Prometheus, state: State) -> None:
    """Keep every active experiment that wants it informed, until cancelled."""
    while True:
        started = time.monotonic()
        for campaign, experiment in list(state.active()):
            about = {"campaign": campaign.id, "experiment": experiment.id}
            try:
                await ask(prometheus, experiment)
            except ExperimentsError as error:
                _log.warning("no counts for experiment %s: %s", experiment.id, error, extra=about)
            except Exception:  # noqa: BLE001 - one experiment's trouble is not the others'
                _log.exception("no counts for experiment %s", experiment.id, extra=about)
        await asyncio.sleep(max(0.0, LOOK_SECONDS - (time.monotonic() - started)))
