"""The rules that the edges shall follow now, and the news when they change."""

from __future__ import annotations

import asyncio
from typing import Any

from fit.rules import Rule


class RulesBoard:
    """Holds the armed rules. Edges wait at :meth:`changed_since` and take them as a lease."""

    def __init__(self, epoch: str, lease_seconds: float) -> None:
        self._epoch = epoch
        self._lease_seconds = lease_seconds
        self._rules: dict[str, Rule] = {}
        self._count = 0
        self._changed = asyncio.Event()

    def put(self, rule: Rule) -> None:
        """Arm a rule."""
        self._rules[rule.experiment] = rule
        self._announce()

    def take_down(self, experiment: str) -> None:
        """Disarm a rule; nothing happens when it is not armed."""
        if self._rules.pop(experiment, None) is not None:
            self._announce()

    def clear(self) -> None:
        """Disarm everything."""
        self._rules.clear()
        self._announce()

    @property
    def version(self) -> str:
        """Changes with every change of the rules, and with every start of the service."""
        return f"{self._epoch}-{self._count}"

    def lease(self) -> dict[str, Any]:
        """The document that an edge receives."""
        return {
            "version": self.version,
            "lease_seconds": self._lease_seconds,
            "rules": [rule.to_json() for rule in self._rules.values()],
        }

    async def changed_since(self, version: str, wait: float) -> None:
        """Return when the version is another one than ``version``, or after ``wait`` seconds."""
        if version != self.version:
            return
        try:
            async with asyncio.timeout(wait):
                await self._changed.wait()
        except TimeoutError:
            return

    def _announce(self) -> None:
        self._count += 1
        self._changed.set()
        self._changed = asyncio.Event()
