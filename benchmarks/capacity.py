"""``python -m benchmarks.capacity [--json]``: what a span, a request and a class cost, and from
that, by calculation alone, what a large site needs. docs/capacity.md explains the formulas.

The traffic is that of :mod:`benchmarks.ingest` (bytes of OTLP to evidence), the classes are those
of :mod:`benchmarks.scheduler`. Costs are CPU time of one core.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass, replace
from math import ceil

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from benchmarks import ingest
from benchmarks.outcome import say
from benchmarks.scheduler import Shop
from ldfi.experiments.domain.traffic.catalogue import Catalogue
from ldfi.experiments.domain.traffic.observation import Observation, Outcome

DAY = 86_400


@dataclass(frozen=True, slots=True)
class Costs:
    """Of one span (CPU microseconds from OTLP to evidence, bytes of OTLP), one request (CPU
    microseconds in the catalogue) and one class (bytes of its row)."""

    span_us: float
    span_bytes: float
    request_us: float
    class_bytes: float


@dataclass(frozen=True, slots=True)
class Site:
    """``requests`` a second, of ``spans`` each, in so many ``classes``. ``failed``: the share with
    an error somewhere, always kept; ``experiments`` a day with ``members`` each. ``samples``:
    requests of the rarest class that matters, which shall be seen in a day. ``rarest``: its
    share of all requests. ``kept_days``: how long the record of experiments is kept. ``busy``: how
    much of a core may be used on average."""

    requests: float = 1_000_000
    spans: float = 20
    classes: int = 5_000
    rarest: float = 1e-7
    samples: int = 100
    failed: float = 0.001
    experiments: int = 500
    members: int = 100
    kept_days: int = 365
    busy: float = 0.6


@dataclass(frozen=True, slots=True)
class Needs:
    """What the site needs. Rates are per second."""

    sampled_percent: float
    kept_requests: float
    kept_spans: float
    stream_megabytes: float
    worker_cores: float
    workers: int
    partitions: int
    engine_cores: float
    experiment_rows: int
    audit_rows: int
    class_megabytes: float
    exposed_share_of_a_day: float


AUDITED = 6
"""Audit rows of an experiment: armed, observing, settling, ended, and up to two of its finding."""


def needs(site: Site, costs: Costs) -> Needs:
    """Compute the formulas of docs/capacity.md."""
    share = min(1.0, site.samples / (site.rarest * site.requests * DAY))
    kept = site.requests * (share + site.failed * (1 - share))
    spans = kept * site.spans
    cores = spans * costs.span_us / 1e6
    workers = ceil(cores / site.busy)
    rows = site.experiments * site.kept_days
    return Needs(
        sampled_percent=100 * share,
        kept_requests=kept,
        kept_spans=spans,
        stream_megabytes=spans * costs.span_bytes / 1e6,
        worker_cores=cores,
        workers=workers,
        partitions=4 * workers,
        engine_cores=kept * costs.request_us / 1e6,
        experiment_rows=rows,
        audit_rows=rows * AUDITED,
        class_megabytes=site.classes * costs.class_bytes / 1e6,
        exposed_share_of_a_day=site.experiments * site.members / (site.requests * DAY),
    )


def measure(spans: int = 200_000, classes: int = 100, each: int = 120) -> Costs:
    """Run the real code over synthetic traffic."""
    bodies = list(ingest.Traffic(seed=1, groups=spans // 500).bodies(spans))
    count = sum(map(_spans_of, bodies))
    began = time.process_time()
    ingest.pipeline(iter(bodies))
    span_us = (time.process_time() - began) / count * 1e6
    observations = _observations(Shop(classes), each)
    catalogue = Catalogue()
    began = time.process_time()
    for at, observation in enumerate(observations):
        catalogue.observe(observation, at / 1_000)
    request_us = (time.process_time() - began) / len(observations) * 1e6
    rows = [len(json.dumps(document)) for document in catalogue.to_json()]
    return Costs(span_us, sum(map(len, bodies)) / count, request_us, sum(rows) / len(rows))


def _spans_of(body: bytes) -> int:
    request = ExportTraceServiceRequest.FromString(body)
    return sum(len(s.spans) for r in request.resource_spans for s in r.scope_spans)


def _observations(shop: Shop, each: int) -> list[Observation]:
    """Make so many requests of every class, in turns, one in twenty with a call that failed."""
    runs = {p: (shop.serve(p, frozenset()), shop.serve(p, frozenset(), 1)) for p in shop.paths}
    return [
        Observation(
            replace(runs[path][serial % 20 == 0], trace_id=f"{number:016x}{serial:016x}"),
            Outcome(f"{number:016x}{serial:016x}", f"d{serial}", "", success=True),
        )
        for serial in range(each)
        for path, number in shop.paths.items()
    ]


def main() -> None:
    """Measure, calculate, say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    for name, default in asdict(Site()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    given = vars(parser.parse_args())
    as_json = given.pop("json")
    costs, site = measure(), Site(**given)
    tables = {
        "costs": [{"cost": name, "measured": value} for name, value in asdict(costs).items()],
        "site": [{"assumed": name, "value": value} for name, value in asdict(site).items()],
        "needs": [
            {"needed": name, "value": float(f"{value:.3g}")}
            for name, value in asdict(needs(site, costs)).items()
        ],
    }
    say(tables, {}, as_json=as_json)


if __name__ == "__main__":
    main()
