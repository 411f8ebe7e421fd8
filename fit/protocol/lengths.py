"""Lengths that are drawn at random, so that a delay hangs as long as calls in production do.

Two ways are known, both in seconds. ``0.5..2``: any length between the two, each as likely as
another. ``p50=0.8..p99=3``: lognormal, as latencies in traces mostly are; half of them are below
0.8, and one in a hundred is above 3. ``2`` is always that. The notation is all there is to such a
distribution: two that mean the same are written the same, so numbers have no zeros that say
nothing.

What is drawn depends on the draw key alone, a text: whoever draws by the same one gets the same
length.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Final

_NUMBER: Final = r"((?:0|[1-9][0-9]{0,3})(?:\.[0-9]{0,2}[1-9])?)"
_EVEN: Final = re.compile(rf"{_NUMBER}\.\.{_NUMBER}", re.ASCII)
_LOGNORMAL: Final = re.compile(rf"p50={_NUMBER}\.\.p99={_NUMBER}", re.ASCII)
_ONE: Final = re.compile(_NUMBER, re.ASCII)
_SHORTEST: Final = 0.001
_BITS: Final = 53
"""As many as a float holds exactly."""


@dataclass(frozen=True, slots=True)
class Exactly:
    """Always the same length, in seconds."""

    longest: float

    def at(self, _chance: float) -> float:
        """Return it."""
        return self.longest


@dataclass(frozen=True, slots=True)
class Even:
    """Any length between two, in seconds, each as likely as another."""

    shortest: float
    longest: float

    def at(self, chance: float) -> float:
        """Return the length below which this share of all lengths is, above 0 and below 1."""
        return self.shortest + chance * (self.longest - self.shortest)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Lengths whose logarithms are normally distributed; the median and the 99th percentile, in
    seconds."""

    median: float
    longest: float

    def at(self, chance: float) -> float:
        """Return the length below which this share of all lengths is, above 0 and below 1."""
        from statistics import NormalDist  # a service that draws nothing does not wait for it

        normal = NormalDist()
        widths = normal.inv_cdf(chance) / normal.inv_cdf(0.99)
        return self.median * math.exp(widths * math.log(self.longest / self.median))


@lru_cache(maxsize=256)
def lengths_of(text: str) -> Exactly | Even | LogNormal:
    """Read a length or a distribution. Raises ValueError, with what could stand there, for what is
    none."""
    if _ONE.fullmatch(text) and float(text) >= _SHORTEST:
        return Exactly(float(text))
    for form, made, least in ((_EVEN, Even, 0.0), (_LOGNORMAL, LogNormal, _SHORTEST)):
        found = form.fullmatch(text)
        if found is not None:
            shorter, longer = map(float, found.groups())
            if least <= shorter < longer:
                return made(shorter, longer)
    raise ValueError(
        f"{text!r} names no lengths; write seconds, the lower first and without zeros that say "
        "nothing: 0.5..2 for any between the two, p50=0.8..p99=3 for a median and a 99th percentile"
    )


def chance(draw_key: str) -> float:
    """Return a number above 0 and below 1, always the same one for a draw key."""
    digest = blake2b(draw_key.encode("utf-8", "replace"), digest_size=8).digest()
    return ((int.from_bytes(digest) >> (64 - _BITS)) + 0.5) / (1 << _BITS)


def drawn(text: str, draw_key: str) -> float:
    """Draw a length, in seconds."""
    return lengths_of(text).at(chance(draw_key))
