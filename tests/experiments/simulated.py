"""Campaigns on simulated programs: no processes, no sockets, no time, but every other part real."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

from experiments.domain.campaign import Campaign, ClassTraffic
from experiments.domain.experiment import Experiment
from experiments.domain.observation import Observation, Outcome
from experiments.domain.request_class import class_of
from experiments.domain.settings import Settings
from experiments.domain.traffic import Traffic
from fit.context import Arm
from lineage.lineage import Lineage, learn
from lineage.span import Span, Trace
from tests.lineage.programs import Call, Run

REQUESTS = 40
"""Requests per arm of an experiment: enough for a verdict in a program that never varies."""


Serve = Callable[[frozenset[str]], tuple[list[Span], bool]]
"""Serves one request under faults: the spans it leaves, and whether it went right."""


def serving(program: Call) -> Serve:
    """A simulated program, as something that serves requests."""

    def serve(faults: frozenset[str]) -> tuple[list[Span], bool]:
        run = Run(faults).execute(program)
        return run.spans, run.good

    return serve


class Application:
    """Serves requests, each from a device of its own."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._ids = itertools.count(1)

    def request(self, experiment: Experiment | None = None, arm: Arm = "treatment") -> Observation:
        """One request: without experiment nobody injects anything."""
        faults = frozenset(map(str, experiment.faults)) if experiment else frozenset()
        lineage, good = self._run(faults if arm == "treatment" else frozenset())
        if experiment is not None:
            would_fire = frozenset(
                f for f in faults if arm == "control" and f.partition("@")[2] in lineage.support
            )
            lineage = replace(lineage, experiment=experiment.id, arm=arm, would_fire=would_fire)
        number = next(self._ids)
        lineage = replace(lineage, trace_id=f"{number:032x}")
        return Observation(lineage, Outcome(lineage.trace_id, f"d{number}", "", good))

    def _run(self, faults: frozenset[str]) -> tuple[Lineage, bool]:
        spans, good = self._serve(faults)
        lineage = learn(Trace.of("0" * 32, spans))
        assert lineage is not None
        return lineage, good


def explore(serve: Serve, settings: Settings, limit: int = 500) -> Campaign:
    """Run a campaign over an application to its end."""
    application = Application(serve)
    traffic = Traffic()
    for _ in range(settings.min_traffic):
        traffic.observe(application.request())
    request_class = class_of({"method": "GET", "path": "/"})
    classes = {request_class.name: ClassTraffic(request_class, traffic)}
    campaign = Campaign("c", settings, (request_class.name,))
    for step in range(limit):
        now = 10.0 * step
        for experiment in campaign.propose(classes, lambda _: None):
            experiment.arm(now)
            for _ in range(REQUESTS):
                campaign.observe(application.request(experiment, "control"))
                campaign.observe(application.request(experiment, "treatment"))
        campaign.review(now + 5)
        if not campaign.active():
            return campaign
    raise AssertionError(f"not done after {limit} experiments")
