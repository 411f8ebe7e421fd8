"""What a test's marker says: ``@pytest.mark.ldfi(max_size=2, kinds=("error", "delay"))``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from ldfi.errors import Invalid
from ldfi.experiments.domain.settings import SETTINGS
from ldfi.fit.protocol.kinds import FaultKind, longest


class InvalidMarker(Invalid):
    """Raised for a marker that cannot be read; the message shows the value."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far one test is explored.

    ``max_size``: faults at once. ``kinds``: those of :mod:`ldfi.fit.protocol.kinds`, each tried
    where it can happen. ``each_kind``: where one hurts, its others are tried too, in place of being
    presumed to hurt. ``delay``: seconds that a ``delay`` hangs where the caller sets no timeout or
    a longer one, and that a ``timeout`` or a length that is drawn lasts at most. ``protected``:
    patterns of points that are never injected into. ``time_limit``: seconds for all runs of the
    test; where it is over with something left to try, the test fails as inconclusive. ``seed``: the
    order of what is tried. Raises InvalidMarker for values that make no sense.
    """

    max_size: int = 2
    kinds: tuple[FaultKind, ...] = ("error",)
    each_kind: bool = False
    delay: float = 10.0
    protected: tuple[str, ...] = ()
    time_limit: float = 60.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what could not be explored."""
        max_size: object = self.max_size  # a marker may hold anything
        if not isinstance(max_size, int) or max_size < 1:
            raise InvalidMarker(f"max_size={max_size!r} leaves nothing to try; give 1 or more")
        for name in ("max_size", "kinds", "seed"):
            try:
                SETTINGS[name].check(getattr(self, name))
            except ValueError as error:
                raise InvalidMarker(str(error)) from error
        for name in ("delay", "time_limit"):
            seconds = getattr(self, name)
            if not isinstance(seconds, int | float) or not 0 < seconds <= 3600:
                raise InvalidMarker(f"{name}={seconds!r} is not between 0 and 3600 seconds")
        if longest(self.kinds) > self.delay:
            raise InvalidMarker(
                f"delay={self.delay:g} is the longest that a delay hangs, and a kind draws "
                f"lengths of {longest(self.kinds):g} s: raise the one or shorten the other"
            )

    @classmethod
    def of(cls, arguments: Collection[Any], options: Mapping[str, Any], seed: int) -> Bounds:
        """Read a marker. Raises InvalidMarker."""
        known = [each.name for each in fields(cls) if each.name != "seed"]
        unknown = [name for name in options if name not in known]
        if arguments or unknown:
            given = [*map(repr, arguments), *unknown]
            raise InvalidMarker(f"{', '.join(given)} is not understood; the marker takes {known}")
        read: dict[str, Any] = {
            name: _as_tuple(value) if name in {"kinds", "protected"} else value
            for name, value in options.items()
        }
        return cls(**read, seed=seed)


def _as_tuple(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(map(str, value))
