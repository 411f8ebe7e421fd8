"""What a process tells Prometheus, in its text format.

Each room says of itself what it measures: ``control/measured.py``, ``process/measured.py`` and
``store/measured.py`` look it up when they are asked, ``instruments.py`` counts where it happens.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import Final

from prometheus_client import ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from ldfi.experiments.telemetry import instruments
from ldfi.experiments.telemetry.instruments import Metric
from ldfi.lineage import machine_code

Values = Mapping[tuple[str, ...], float]

BUILD = Metric(
    "ldfi_build_info",
    "gauge",
    "Always 1. `decoding`: who decodes OTLP as protobuf here, `native` or `python`.",
    ("version", "python", "decoding"),
)
LEADS = Metric("ldfi_leads", "gauge", "1 in the process that leads; it alone has an engine.")
IN_PROCESS: Final = (BUILD, LEADS)


class Families(Collector):
    """Metric families that have been looked up already."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Family]:
        """Return the metrics that were looked up."""
        return self._families


def text(families: Iterable[Family], *, whole: bool = True) -> bytes:
    """Write these families in Prometheus's text format, and with ``whole`` the instruments and the
    process itself, which count what all namespaces do."""
    if not whole:
        return generate_latest(Families(families))
    process = ProcessCollector(registry=None).collect()
    return generate_latest(Families([*families, *instruments.REGISTRY.collect(), *process]))


def of_process(*, leads: bool) -> Iterator[Family]:
    """Return the metrics that every process has."""
    yield family(BUILD, {(version("ldfi"), platform.python_version(), machine_code.way()): 1})
    yield family(LEADS, {(): leads})


def family(metric: Metric, values: Values) -> Family:
    """Make a family with these values, each by its labels."""
    kind = CounterMetricFamily if metric.type == "counter" else GaugeMetricFamily
    family = kind(metric.name, metric.meaning, labels=metric.labels)
    for labels, value in values.items():
        family.add_metric(labels, float(value))
    return family
