"""The failure context: what travels with a request in W3C baggage and says what shall fail.

One baggage entry, ``fit``, self-contained, so that a service needs no connection to anybody::

    1.KEY.EXPERIMENT.ARM.EXPIRY.FAULTS.MAC

Only ``[A-Za-z0-9._~-]`` occur, since SDKs percent-encode all else and a proxy's expression on the
raw header would then silently miss. How the faults are written is what the versions differ in
(:mod:`ldfi.fit.protocol.notation`): version 1 knows ``error`` and ``delay``, each later one more
kinds (``kinds.json``). A writer uses the first that can say it, so that earlier
readers keep understanding what they can do.
The MAC covers all that stands before it. ``docs/failure-context.md`` specifies all this for other
languages, ``fit/protocol/vectors`` tests them.

The hash of a name has 48 bits: two of a thousand points collide with a chance of 2·10⁻⁹.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from ldfi.fit.protocol.errors import ExpiredContext, ForgedContext, MalformedContext
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.keys import Keys
from ldfi.fit.protocol.kinds import KINDS, VERSIONS, draws, family
from ldfi.fit.protocol.notation import Injection, point_hash, read, readable, way, written

__all__ = [
    "ENTRY",
    "MAX_LENGTH",
    "Arm",
    "FailureContext",
    "Injection",
    "decode",
    "encode",
    "point_hash",
]

Arm = Literal["treatment", "control"]

ENTRY: Final = "fit"
MAX_LENGTH: Final = 4096 - len("fit=")
"""Characters of a value. OpenTelemetry's SDKs drop any entry that with its name exceeds 4,096."""
DEFAULT_DELAY_MS: Final = 10_000
LONGEST: Final = 3_660
"""Seconds ahead that an expiry may lie: an hour, which is the most that anybody asks for, and a
minute for clocks that differ. Whoever gets hold of a signed context cannot use it for years."""

_ARMS: dict[str, Arm] = {"t": "treatment", "c": "control"}
_SHAPE = re.compile(
    rf"(?P<version>[{''.join(VERSIONS)}])\.(?P<key>[\w-]{{1,16}})\.(?P<experiment>[\w-]{{1,64}})"
    r"\.(?P<arm>[tc])\.(?P<expiry>0|[1-9][0-9]{0,11})\.(?P<faults>[\w~-]*)\.(?P<mac>[\w-]{22})",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class FailureContext:
    """A verified failure context. ``expires`` is in Unix seconds; ``injections`` by point hash."""

    experiment: str
    arm: Arm
    expires: int
    injections: Mapping[str, Injection]

    def at(self, point: str) -> Injection | None:
        """Find what shall happen (or, in the control arm, would happen) at the point of this
        name."""
        return self.injections.get(point_hash(point))


def encode(
    keys: Keys,
    experiment: str,
    arm: Arm,
    expires: int,
    faults: Iterable[Fault],
    *,
    delay_ms: int = DEFAULT_DELAY_MS,
    draw_key: str = "",
) -> str:
    """Sign a failure context. ``expires`` is in Unix seconds. ``delay_ms``: the longest that a call
    may hang. ``draw_key``: seeds the lengths that are drawn (:mod:`ldfi.fit.protocol.lengths`),
    one key for each request.

    Of several faults at one point only the strongest is written: what fails before a timeout, and
    that before a delay; every call before the first few. Raises MalformedContext when it would not
    be read back.
    """
    version, listed = written(faults, delay_ms, draw_key)
    payload = ".".join([version, keys.signing_id, experiment, arm[0], str(expires), listed])
    value = f"{payload}.{keys.sign(payload)}"
    match = _SHAPE.fullmatch(value) if len(value) <= MAX_LENGTH else None
    if match is None or not readable(version, listed):
        raise MalformedContext(
            f"this does not fit a failure context: experiment {experiment!r} (up to 64 letters, "
            f"digits, - and _), expiry {expires}, delay {delay_ms} ms (1 to 9,999,999), "
            f"{len(value)} of at most {MAX_LENGTH} characters"
        )
    return value


def room(kinds: Collection[str], *, delay_ms: int = DEFAULT_DELAY_MS) -> int:
    """Return how many faults of these kinds fit into one context, whatever else it says.

    Of faults at the first calls only, a few less: each takes up to three characters more. Of
    lengths that are drawn, each may be of another group.
    """
    first = [family(kind) for kind in kinds if family(kind) in KINDS]
    singly = [written([Fault("", kind)], delay_ms)[1] for kind in first]
    ids, expiry, mac = 16 + 64, 12, 22
    around = len(".".join(["1", "", "", "t", "", "", ""])) + ids + expiry + mac
    left = MAX_LENGTH - around + len("~")
    limits = [left // (max(map(len, singly), default=0) + len("~"))] if first or not kinds else []
    if len(first) < len(kinds):
        ways = {kind: len(way(Fault("", kind), delay_ms)) + len("~~") for kind in kinds}
        apart = max((size for kind, size in ways.items() if draws(kind)), default=0)
        limits.append((left - sum(ways.values())) // (len(point_hash("")) + apart))
    return min(limits)


def decode(keys: Keys, value: str, now: float, *, grace: float = 0.0) -> FailureContext:
    """Verify and read a failure context. ``now`` is in Unix seconds. ``grace``: seconds since its
    expiry for which it is read all the same; whoever gives any has to look at ``expires``.

    Raises MalformedContext, ForgedContext or ExpiredContext; the MAC is checked before anything
    else is believed.
    """
    match = _SHAPE.fullmatch(value) if len(value) <= MAX_LENGTH else None
    if match is None or not readable(match["version"], match["faults"]):
        raise MalformedContext(
            f"not a failure context of version 1 to {VERSIONS[-1]}: {value[:80]!r}"
        )
    if not keys.verify(value[: match.start("mac") - 1], match["key"], match["mac"]):
        raise ForgedContext(f"failure context of key {match['key']!r} does not verify")
    expires = int(match["expiry"])
    if expires + grace <= now:
        raise ExpiredContext(f"failure context expired {now - expires:.0f} s ago")
    if expires - now > LONGEST:
        raise ExpiredContext(
            f"failure context expires {expires - now:.0f} s from now; the maximum is {LONGEST} s"
        )
    injections = read(match["version"], match["faults"])
    return FailureContext(match["experiment"], _ARMS[match["arm"]], expires, injections)
