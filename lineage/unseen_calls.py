"""The figure for what cannot be seen of the requests of a class: gaps, each with its share.

A call that leaves no span in its request's trace cannot be made to fail, and an outcome without it
proves nothing of it. So whatever is announced of a class says how many of its calls are known to be
missing, where, and what to change. Zero is what was counted, not a proof that nothing is missing.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, cast

from ldfi.checker.verdict_meaning import upper_bound

Why = Literal["loose", "arrival", "parentless", "holes"]
"""``loose``: calls in traces of their own. ``arrival``: requests that begin at a service inside
other requests, and that no recorded call explains. ``parentless``: spans that name no parents.
``holes``: traces of which less came than they announced."""

NAMED: Final = 5
"""Gaps that are named in one line; the others are counted."""

_ADVICE: Final[Mapping[Why, str]] = {
    "loose": (
        "pass the context on to the thread, pool, timer or queue that makes them; or say whose they"
        " are: `ldfi loose yes POINT` or `ldfi loose no POINT`"
    ),
    "arrival": (
        "have their caller pass the traceparent header on, through a client that OpenTelemetry"
        " instruments; or say whose they are: `ldfi loose yes POINT` or `ldfi loose no POINT`"
    ),
    "parentless": "update what exports their spans, or let them read the traceparent header",
    "holes": "sample by parent everywhere, and look whether an exporter's queue is full",
}


@dataclass(frozen=True, slots=True)
class Gap:
    """Calls of some requests that their traces do not tell of.

    ``service``: who makes them; of arrivals and spans without parents, whose they are. ``at``: what
    is called, a service or an address. ``point``: by which name a person says whose they are; empty
    where nobody has to. ``calls`` of ``arrivals`` there are not seen; of spans without parents and
    of holes these are requests. ``sure``: whether it is no chance that they run within such
    requests; else nobody can tell by time alone.
    """

    why: Why
    service: str
    at: str
    point: str
    calls: int
    arrivals: int
    sure: bool = True

    @property
    def share(self) -> float:
        """Return which share is not seen."""
        return self.calls / max(1, self.arrivals)

    @property
    def at_most(self) -> float:
        """Return the upper bound of that share, at 95 %."""
        return upper_bound(self.calls, max(1, self.arrivals))

    @property
    def words(self) -> str:
        """Say it to people, in one line."""
        share = f"{100 * self.share:.2g} %" if self.share < 1 else "all"
        return f"{self._said} {share} of {_WHOLE[self.why]}{'' if self.sure else _UNSURE}"

    @property
    def _said(self) -> str:
        many = f"{self.calls:,} {_THINGS[self.why]}{'s' if self.calls != 1 else ''}"
        run, come = ("runs", "comes") if self.calls == 1 else ("run", "come")
        if self.why == "loose":
            own = "traces of their own" if self.calls != 1 else "a trace of its own"
            return f"{many} of {self.service} at {self.at} {run} in {own},"
        if self.why == "arrival":
            them = "it" if self.calls == 1 else "them"
            return (
                f"{many} at {self.at} {come} while they run, and no recorded call explains {them},"
            )
        if self.why == "parentless":
            return f"spans of {self.service} name no parents in {many},"
        return f"{many} of {self.service} announced more than came,"

    @property
    def advice(self) -> str:
        """Return what to change."""
        text = _ADVICE[self.why].replace("POINT", f"'{self.point}'")
        return f"in {self.service}: {text}" if self.why == "loose" else text

    def to_json(self) -> dict[str, Any]:
        """Write it, as certificates have it."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Gap:
        """Read what :meth:`to_json` wrote. Raises KeyError or TypeError for anything else."""
        names = ("service", "at", "point", "calls", "arrivals", "sure")
        return cls(cast(Why, data["why"]), *(data[name] for name in names))


_THINGS: Final[Mapping[Why, str]] = {
    "loose": "call",
    "arrival": "arrival",
    "parentless": "request",
    "holes": "trace",
}
_WHOLE: Final[Mapping[Why, str]] = {
    "loose": "arrivals there",
    "arrival": "arrivals there",
    "parentless": "them",
    "holes": "them",
}
_UNSURE: Final = "; by time alone nobody can tell whether they are theirs"


@dataclass(frozen=True, slots=True)
class Unseen:
    """What cannot be seen of some requests. ``calls``: all calls of theirs that are known."""

    gaps: tuple[Gap, ...] = ()
    calls: int = 0

    @property
    def share(self) -> float:
        """Return the largest share of calls somewhere that is known not to be seen."""
        return max((gap.share for gap in self.gaps if gap.sure), default=0.0)

    @property
    def at_most(self) -> float:
        """Return the same with what may be theirs, at its upper bound of 95 %."""
        return max((gap.at_most for gap in self.gaps), default=0.0)

    @property
    def line(self) -> str:
        """Say it in one line; empty where nothing is known to be missing."""
        if not self.gaps:
            return ""
        more = len(self.gaps) - NAMED
        said = "; ".join(gap.words for gap in self.gaps[:NAMED])
        return f"cannot see: {said}{f'; and {more} more' if more > 0 else ''}"

    def above(self, bound: float | None) -> bool:
        """Return whether more may be missing than somebody asked for; never, where nobody did."""
        return bound is not None and self.at_most > bound

    def advice(self) -> Iterator[str]:
        """Return what to change, the widest gap first."""
        yield from dict.fromkeys(gap.advice for gap in self.gaps)

    def to_json(self) -> dict[str, Any]:
        """Write it, as certificates and records have it."""
        return {
            "at_most": round(self.at_most, 6),
            "calls": self.calls,
            "gaps": [gap.to_json() for gap in self.gaps],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Unseen:
        """Read what :meth:`to_json` wrote; nothing where nothing was written."""
        if data is None:
            return cls()
        return cls(tuple(map(Gap.from_json, data["gaps"])), data["calls"])

    @classmethod
    def of(cls, gaps: Iterable[Gap], calls: int) -> Unseen:
        """Put gaps in order, the widest first."""
        return cls(tuple(sorted(gaps, key=lambda gap: (-gap.share, gap.why, gap.point))), calls)


NOTHING: Final = Unseen()
