"""Who the devices are and what they ask for: seeded, so that a run can be repeated."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from ldfi.demo.catalogue import ADJECTIVES, NOUNS, TITLES

TYPES = ("tv", "phone", "tablet")
DEVICES_PER_MEMBER = 2
REQUESTS_PER_SESSION = 20


@dataclass(slots=True)
class Device:
    """One device. Several belong to one member; a session is a stretch of its use."""

    device: str
    member: str
    type: str
    requests: int = 0

    def session(self) -> str:
        """Name the session of the next request."""
        number = self.requests // REQUESTS_PER_SESSION
        self.requests += 1
        return f"{self.device}-s{number}"


@dataclass(frozen=True, slots=True)
class Ask:
    """A request a device is about to make: its class, its path, its trace."""

    kind: str
    path: str
    trace_id: str
    traceparent: str


def fleet(count: int) -> list[Device]:
    """Make devices with identities that never change from run to run."""
    return [
        Device(
            device=f"device-{number:04}",
            member=f"account-{number // DEVICES_PER_MEMBER:04}",
            type=TYPES[number % len(TYPES)],
        )
        for number in range(count)
    ]


def ask(kind: str, chance: random.Random, sampled: float) -> Ask:
    """Make a request of one class; its trace is flagged as sampled in a share of ``sampled``."""
    trace_id = f"{chance.getrandbits(128) or 1:032x}"
    span_id = f"{chance.getrandbits(64) or 1:016x}"
    flags = "01" if chance.random() < sampled else "00"
    return Ask(kind, _path(kind, chance), trace_id, f"00-{trace_id}-{span_id}-{flags}")


def _path(kind: str, chance: random.Random) -> str:
    if kind == "play":
        return f"/play/{chance.choice(list(TITLES))}"
    if kind == "search":
        words = chance.choice(ADJECTIVES), chance.choice(NOUNS)
        return "/search?q=" + "+".join(words).lower()
    return f"/{kind}"


def arrivals(rate: float, chance: random.Random) -> Iterator[float]:
    """Draw Poisson arrivals: seconds since the start, growing for ever. ``rate`` is per second."""
    now = 0.0
    while True:
        now += chance.expovariate(rate)
        yield now
