"""Do the times that a campaign was given go together with those of the service?

**Delays and leases.** A failure context expires with the lease it was signed under. One that
expires within its own request lets alone whatever is called after a long delay, and then a request
counts in which not all was injected that should have been. A lease is put on record anew after a
third of it, and an edge asks for it every so often, so at the moment a request comes in not all of
it is left.

**Settling.** A request under a delay lasts that long, and its trace counts as whole when no span
has come for a while. Who does not wait that long takes it for a device that never reported.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Final

from ldfi.experiments.domain.settings import Settings
from ldfi.fit.protocol.kinds import FaultKind, longest

RENEWED: Final = 1 / 3
"""The part of a lease after which it is put on record anew."""


@dataclass(frozen=True, slots=True)
class ServiceTimes:
    """The service's own times, in seconds. ``quiet``: without a span, until a trace is whole.
    ``asked``: at most so long an edge goes by one answer."""

    lease: float
    quiet: float
    asked: float

    @property
    def context(self) -> float:
        """For how long a failure context is sure to hold, from the request's beginning."""
        return max(0.0, self.lease * (1 - RENEWED) - 2 * self.asked)

    def holds(self, settings: Settings) -> float:
        """Return the same for a campaign with these settings."""
        return max(self.context, settings.patience or 0.0)

    def lease_for(self, delay: float) -> float:
        """Return the shortest lease under which a context outlives such a delay."""
        return (delay + 2 * self.asked) / (1 - RENEWED)


def fitted(
    settings: Settings, given: Collection[str], waits: ServiceTimes, *, delays: bool
) -> Settings:
    """Shorten the delay and lengthen the settling as the service's times want it, unless given.

    ``delays``: whether the campaign may delay anything.
    """
    changed: dict[str, Any] = {}
    delay, holds = settings.delay if delays else 0.0, waits.holds(settings)
    if "delay" not in given and delay > holds >= 0.1:
        delay = changed["delay"] = math.floor(10 * holds) / 10
    if "settle" not in given:
        changed["settle"] = max(settings.settle, min(120.0, math.ceil(waits.quiet + delay)))
    return replace(settings, **changed)


def contradiction(
    settings: Settings,
    waits: ServiceTimes,
    *,
    delays: bool,
    kinds: Collection[FaultKind] = (),
) -> str | None:
    """Return why the settings do not fit the service's times, with values that would; None if
    they fit.

    ``kinds``: what the campaign may try; a length that is drawn is never longer than a delay.
    """
    if longest(kinds) > settings.delay:
        return (
            f"kinds ask for delays of up to {longest(kinds):g} s, and delay is "
            f"{settings.delay:g} s, the longest that a call is held up: ask for "
            f"shorter ones, or set delay to at least {longest(kinds):g} s"
        )
    holds = waits.holds(settings)
    if delays and settings.delay > holds:
        return (
            f"delays of {settings.delay:g} s need a longer lease: under a lease of "
            f"{waits.lease:g} s a failure context holds for {holds:.1f} s, and calls after "
            f"the delay would not be injected. Set "
            f"LDFI_LEASE={math.ceil(waits.lease_for(settings.delay))}, a patience of "
            f"{math.ceil(settings.delay)} s, or a delay of at most {holds:.1f} s"
        )
    if settings.settle < waits.quiet:
        return (
            f"settle must be at least {waits.quiet:g} s, got {settings.settle:g} s: a trace is "
            f"whole when no span has come for {waits.quiet:g} s (LDFI_QUIET), so late devices "
            "would count as not reported"
        )
    return None
