"""What an injector can reach, as it says it on a span: points, as patterns, and the kinds there.

    1 python/0.2.0 api>http:* api>db:*
    1 ldfi-proxy/envoy api>http:*|delay,error,refused,status api>rpc:*|delay,error,grpc,refused
    1 python/0.3.0 api>http:* api>db:* api>library:fit api>library:httpx api>library:redis

A pattern is the name of a point with ``*`` for any run of characters; its caller stands for
itself. Behind ``|`` are the kinds, by the word before their colon; without it all that a point of
this kind can have.

``CALLER>library:NAME`` names no points: it says which client libraries the injector has hold of, by
the names that :mod:`ldfi.lineage.attributes` reads from spans. A report with such a name reaches
the calls of just these libraries, among the points that its other patterns name; ``library:*`` is
whatever makes the call, as of a proxy. A report without any is one of kinds only, as older
injectors write them. The grammar is in ``docs/failure-context.md``, its vectors are in
``fit/protocol/vectors/reports.json``.

Nobody signs a report. One that is forged can hide points from campaigns or show some at which
nothing will fire; it can make nothing fail.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

VERSION: Final = "1"
MAX_LENGTH: Final = 4_092
MAX_REACHES: Final = 64

LIBRARY: Final = "library:"
"""How the pattern of a client library begins, in the place of a kind of point."""

OWN: Final = "fit"
"""The name of ``fit`` among libraries: who reports by library always reports this one."""

_INJECTOR = re.compile(r"[A-Za-z0-9._/+-]{1,64}")
_WORD = re.compile(r"[a-z]{1,16}")
_NAMED = r"[^\s>|\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,240}"
_REACH = re.compile(rf"({_NAMED})>({_NAMED})(?:\|([a-z,]{{1,400}}))?")


@dataclass(frozen=True, slots=True)
class PointPattern:
    """Points of one caller that can be made to fail. ``rest``: the pattern behind ``CALLER>``.
    ``kinds``: the words of the kinds that are possible there; None: all that such points have."""

    caller: str
    rest: str
    kinds: frozenset[str] | None = None

    @property
    def library(self) -> str:
        """Return the client library that it names; empty where it names points."""
        return self.rest.removeprefix(LIBRARY) if self.rest.startswith(LIBRARY) else ""

    def __str__(self) -> str:
        kinds = "" if self.kinds is None else "|" + ",".join(sorted(self.kinds))
        return f"{self.caller}>{self.rest}{kinds}"

    @classmethod
    def parse(cls, text: str) -> PointPattern:
        """Read what ``str`` wrote. Raises ValueError."""
        found = _REACH.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not a pattern of points")
        caller, rest, said = found.groups()
        kinds = None if said is None else frozenset(said.split(","))
        if kinds is not None and not all(map(_WORD.fullmatch, kinds)):
            raise ValueError(f"{said!r} are not kinds of fault")
        return cls(caller, rest, kinds)


@dataclass(frozen=True, slots=True)
class InjectorReport:
    """What one injector says. ``injector``: what it is and of which version."""

    injector: str
    reaches: tuple[PointPattern, ...]

    def __str__(self) -> str:
        return " ".join((VERSION, self.injector, *map(str, self.reaches)))

    @classmethod
    def parse(cls, text: str) -> InjectorReport:
        """Read a report. Raises ValueError for one that is not of version 1, or too long: as with
        a failure context, what is not understood as a whole is not taken at all."""
        version, *said = text.split(" ", MAX_REACHES + 2)[: MAX_REACHES + 3]
        if version != VERSION or len(text) > MAX_LENGTH:
            raise ValueError(f"no report of version {VERSION}")
        if not said or _INJECTOR.fullmatch(said[0]) is None or len(said) > MAX_REACHES + 1:
            raise ValueError("no report: an injector and at most 64 patterns")
        return cls(said[0], tuple(map(PointPattern.parse, said[1:])))
