"""Campaigns on simulated programs: no processes, no sockets, no time, but every other part real."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from ldfi.experiments.domain.campaign.campaign import Campaign, Definition
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.catalogue import KnownClass, LearnedClass
from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.experiments.domain.traffic.observation import Observation, Outcome
from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.predicate import Condition, Predicate
from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.span import Span, Trace
from ldfi.testing.programs import Call, Run, points_of
from tests.lineage.drawn import programs

REQUESTS = 24
"""Requests per arm of an experiment: enough for a verdict in a program that never varies."""

BOOT = Predicate.of([Condition("method", "GET"), Condition("path", "/")])


Serve = Callable[[frozenset[str]], tuple[list[Span], bool]]
"""Serves one request under faults: the spans it leaves, and whether it went right."""


Faults = frozenset[str]


def working(points: int, **how: Any) -> st.SearchStrategy[Call]:
    """Programs that call something, and work when nothing fails."""
    return programs(points, **how).filter(
        lambda program: bool(points_of(program)) and Run(frozenset()).execute(program).good
    )


def failing_sets(program: Call, faults: list[str], size: int) -> set[Faults]:
    """Every minimal failing set up to a size, by trying them all."""
    found: set[Faults] = set()
    for many in range(1, size + 1):
        for candidate in map(frozenset, itertools.combinations(faults, many)):
            points = {fault.partition("@")[2] for fault in candidate}
            if len(points) < many or any(known <= candidate for known in found):
                continue
            if not Run(candidate).execute(program).good:
                found.add(candidate)
    return found


def errors_of(program: Call) -> list[str]:
    """An error at each point of a program."""
    return [f"error@{point}" for point in points_of(program)]


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
        self._served: dict[frozenset[str], tuple[Lineage, bool]] = {}
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
        """Serve a request, or answer as before: under the same faults a program does the same."""
        if faults not in self._served:
            spans, good = self._serve(faults)
            lineage = learn(Trace.of("0" * 32, spans))
            assert lineage is not None
            self._served[faults] = lineage, good
        return self._served[faults]


def a_class(traffic: Traffic, name: str = "GET /") -> KnownClass:
    """A class whose requests all do the same."""
    figures: dict[str, Any] = {"version": 1, "consistency": 1.0, "hit_rate": 1.0, "sample": 100}
    learned = LearnedClass(BOOT, "root", name)
    return KnownClass(learned, traffic, **figures, first_seen=0.0, last_seen=0.0)


def a_campaign(settings: Settings, *classes: str) -> Campaign:
    """A campaign whose experiments are numbered."""
    ids = itertools.count(1)
    return Campaign("c", Definition(settings, classes), lambda: f"e{next(ids)}")


def run_experiment(
    application: Application,
    experiment: Experiment,
    now: float,
    level: float = 1.0,
    observe: Callable[[Observation], object] | None = None,
) -> None:
    """Arm an experiment, let devices come, and end it. ``observe``: who takes in what they did, the
    experiment itself if nobody does."""
    experiment.arm(now, level)
    experiment.taken()
    heard = observe or experiment.observe
    for _ in range(REQUESTS):
        heard(application.request(experiment, "control"))
        heard(application.request(experiment, "treatment"))
    if not experiment.review(now + 5):
        experiment.review(now + experiment.settings.window)
    quiet = now + 60
    assert not experiment.settle(quiet, disarmed=True)  # the last edge has stopped just now
    assert experiment.settle(quiet + experiment.settings.settle, disarmed=True)


def traffic_of(application: Application, requests: int) -> Traffic:
    """What is known after so many requests that nobody disturbed."""
    traffic = Traffic()
    for _ in range(requests):
        traffic.observe(application.request(), now=0.0)
    return traffic


def explore(serve: Serve, settings: Settings, limit: int = 500) -> Campaign:
    """Run a campaign over an application to its end."""
    return explore_application(Application(serve), settings, limit)


def explore_application(application: Application, settings: Settings, limit: int = 500) -> Campaign:
    """The same, over any application."""
    classes = {"GET /": a_class(traffic_of(application, settings.min_traffic))}
    campaign = a_campaign(settings)
    for step in range(limit):
        now = 100.0 * step
        campaign.enroll(classes, lambda _: ())
        for experiment in campaign.propose(classes, lambda _n, _e: None, 1, now):
            level = campaign.fdr.next_level(settings.fdr)
            run_experiment(application, experiment, now, level, campaign.observe)
            campaign.close(experiment)
        if campaign.complete(classes):
            campaign.end_run(now)
            return campaign
    raise AssertionError(f"not done after {limit} experiments")
