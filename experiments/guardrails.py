"""Guardrails: PromQL conditions that must hold while anything is armed (design, section 9).

They are asked every second. What cannot be known is a breach: a Prometheus that does not answer
stops injection just as a condition that fails does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from experiments.prometheus import Prometheus
from experiments.scheduler import Scheduler
from fit.errors import LdfiError

LOOK_SECONDS = 1.0


class Guardrails:
    """Conditions, and the Prometheus that is asked whether they hold."""

    def __init__(self, prometheus: Prometheus, guardrails: Sequence[str]) -> None:
        self._prometheus = prometheus
        self._guardrails = guardrails

    async def breach(self) -> str | None:
        """Why nothing may be injected now; None when every condition holds."""
        for guardrail in self._guardrails:
            try:
                if not await self._prometheus.holds(guardrail):
                    return f"guardrail does not hold: {guardrail}"
            except LdfiError as error:
                return f"guardrail cannot be asked: {error}"
        return None

    async def watch(self, scheduler: Scheduler) -> None:
        """Keep the scheduler informed until cancelled."""
        while True:
            started = time.monotonic()
            scheduler.breach = await self.breach()
            await asyncio.sleep(max(0.0, LOOK_SECONDS - (time.monotonic() - started)))
