"""The two applications that there are to start: a shop, and a streaming service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ldfi.demo import services
from ldfi.demo.limits import PATIENCE


@dataclass(frozen=True, slots=True)
class World:
    """An application. ``processes``: the services that share one; of these at most one calls
    others, and it comes first, for ``fit`` and OpenTelemetry's clients know one name in a process.
    ``databases``: traced by nobody. ``rates``: requests a second that devices make, by class.
    ``patience``: seconds after which a device gives up.
    """

    package: str
    gateway: str
    processes: tuple[tuple[str, ...], ...]
    databases: frozenset[str]
    rates: Mapping[str, float]
    patience: float

    @property
    def names(self) -> tuple[str, ...]:
        """Name every service."""
        return tuple(name for together in self.processes for name in together)

    def module(self, service: str) -> str:
        """Return where the code of a service lives."""
        return f"{self.package}.{service.replace('-', '_')}"


STREAMING: Final = World(
    package="ldfi.demo.services",
    gateway=services.GATEWAY,
    processes=tuple((name,) for name in services.NAMES),
    databases=services.DATABASES,
    rates={"boot": 30.0, "play": 12.0, "search": 12.0},
    patience=PATIENCE,
)

SHOP: Final = World(
    package="ldfi.demo.shop",
    gateway="shop",
    processes=(("shop",), ("layout", "offers", "offers-cache", "prices"), ("stock", "stockdb")),
    databases=frozenset({"stockdb"}),
    rates={"home": 12.5, "checkout": 12.5},
    patience=15.0,  # nothing in it is slow: who waits longer waits for the machine
)

WORLDS: Final[Mapping[str, World]] = {"shop": SHOP, "streaming": STREAMING}
