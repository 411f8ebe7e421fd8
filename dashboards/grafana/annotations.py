"""What ldfi did, laid over any dashboard: where faults may have been injected, who was hurt, halts.

Prometheus scrapes now and then, so an experiment that begins and ends between two scrapes shows as
its end alone; where scrapes are more than half a minute apart it may not show. *Was it us?* misses
none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from grafana_foundation_sdk.builders import dashboard as build

from ldfi.dashboards.grafana.panels import BLUE, ORANGE, RED, SOURCE

STEP: Final = "15s"
"""Between two times at which Prometheus is asked; neighbours become one stretch."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """PromQL that has a value while there is something to mark."""

    name: str
    expr: str
    text: str
    colour: str

    def build(self) -> build.AnnotationQuery:
        """Make Grafana's own of it."""
        return (
            build.AnnotationQuery()
            .name(self.name)
            .datasource(SOURCE)
            .enable(True)
            .icon_color(self.colour)
            .expr(self.expr)
            .title_format(self.name)
            .text_format(self.text)
            .step(STEP)
        )


ANNOTATIONS: Final = (
    Annotation(
        "ldfi: armed",
        "max(ldfi_rules_armed) > 0 or max(sum by (instance) "
        "(increase(ldfi_experiments_ended_total[1m]))) > 0",
        "Faults may be injected into a few requests.",
        BLUE,
    ),
    Annotation(
        "ldfi: hurt",
        "max(increase(ldfi_members_hurt_total[1m])) > 0",
        "Treated devices have reported a failure within the minute.",
        RED,
    ),
    Annotation(
        "ldfi: halted",
        "max(ldfi_halted) > 0 or max(ldfi_guardrail_breached) > 0",
        "Nothing is injected: somebody has halted everything, or a guardrail does not hold.",
        ORANGE,
    ),
)
