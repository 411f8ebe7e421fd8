"""Guardrails: PromQL conditions that must hold while anything is armed (design, section 9).

They are asked every second. What cannot be known is a breach: a Prometheus that does not answer
stops injection just as a condition that fails does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from ldfi.errors import LdfiError
from ldfi.experiments.scheduler.shared_state import State
from ldfi.experiments.telemetry.prometheus import Prometheus

LOOK_SECONDS = 1.0


class Guardrails:
    """Conditions, and the Prometheus that is asked whether they hold."""

    def __init__(self, prometheus: Prometheus, guardrails: Sequence[str]) -> None:
        self._prometheus = prometheus
        self._guardrails = guardrails

    async def breach(self) -> str | None:
        """Why nothing may be injected now; None when every condition holds.

        All are asked at once, so that this takes no longer than the slowest of them.
        """
        told = await asyncio.gather(*map(self._breach_of, self._guardrails))
        return next((reason for reason in told if reason is not None), None)

    async def _breach_of(self, guardrail: str) -> str | None:
        try:
            if not await self._prometheus.holds(guardrail):
                return f"guardrail does not hold: {guardrail}"
        except LdfiError as error:
            return f"guardrail cannot be asked: {error}"
        except Exception as error:  # noqa: BLE001 - a watch that ends would never see a breach
            return f"guardrail cannot be asked: {type(error).__name__} {error}"
        return None

    async def watch(self, state: State) -> None:
        """Keep the state informed until cancelled. Nothing is armed before the first answer."""
        state.breach = "guardrails have not been asked yet"
        while True:
            started = time.monotonic()
            state.breach = await self.breach()
            await asyncio.sleep(max(0.0, LOOK_SECONDS - (time.monotonic() - started)))
