"""Faults: an injection point and the way in which it fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FaultKind = Literal["error", "delay"]
KINDS: tuple[FaultKind, ...] = ("error", "delay")


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One fault: ``kind`` at ``point`` (a point's name). ``str(fault)`` is ``kind@point``.

    ``error``: the call fails at once. ``delay``: the call is slower than its caller will wait.
    """

    point: str
    kind: FaultKind

    def __str__(self) -> str:
        return f"{self.kind}@{self.point}"

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Read ``kind@point``. Raises ValueError for an unknown kind or an empty point."""
        kind, at, point = text.partition("@")
        if not at or not point:
            raise ValueError(f"{text!r} is no fault; write KIND@POINT, for instance error@{text}")
        for known in KINDS:
            if kind == known:
                return cls(point, known)
        raise ValueError(f"{kind!r} in {text!r} is no kind of fault; the kinds are {list(KINDS)}")
