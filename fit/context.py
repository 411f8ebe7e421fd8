"""The failure context: what travels with a request in W3C baggage and says what shall fail.

One baggage entry, ``fit``, self-contained, so that a service needs no connection to anybody::

    1.KEY.EXPERIMENT.ARM.EXPIRY.FAULTS.MAC

Only ``[A-Za-z0-9._~-]`` occur, since SDKs percent-encode all else and a proxy's expression on the
raw header would then silently miss. ``FAULTS`` are joined by ``~``; each is a letter (``e`` error,
``d`` delay), eight characters of hash of the point's name, for a delay its length in milliseconds,
and where only the first calls fail, ``n`` and their number. The MAC covers all that stands before
it. ``docs/failure-context.md`` specifies all this for other languages, ``fit/vectors`` tests them.

The hash of a name has 48 bits: two of a thousand points collide with a chance of 2·10⁻⁹.
"""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Literal

from ldfi.fit.errors import ExpiredContext, ForgedContext, MalformedContext
from ldfi.fit.faults import Fault
from ldfi.fit.keys import Keys
from ldfi.kinds import FaultKind

Arm = Literal["treatment", "control"]

ENTRY: Final = "fit"
MAX_LENGTH: Final = 4096 - len("fit=")
"""Characters of a value. OpenTelemetry's SDKs drop any entry that with its name exceeds 4,096."""
DEFAULT_DELAY_MS: Final = 10_000

_VERSION = "1"
_ARMS: dict[str, Arm] = {"t": "treatment", "c": "control"}
_KINDS: dict[str, FaultKind] = {"e": "error", "d": "delay"}
_ONE = r"(?:e[\w-]{8}|d[\w-]{8}[1-9][0-9]{0,6})(?:n[1-9][0-9]?)?"
_SHAPE = re.compile(
    r"1\.(?P<key>[\w-]{1,16})\.(?P<experiment>[\w-]{1,64})\.(?P<arm>[tc])"
    rf"\.(?P<expiry>0|[1-9][0-9]{{0,11}})\.(?P<faults>(?:{_ONE}(?:~{_ONE})*)?)\.(?P<mac>[\w-]{{22}})",
    re.ASCII,
)
_FAULT = re.compile(
    r"(?P<kind>[ed])(?P<hash>[\w-]{8})(?P<delay>[0-9]*)(?:n(?P<first>[0-9]+))?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Injection:
    """What a failure context asks of one point.

    ``delay_ms`` is the longest it may hang. ``first``: only so many calls of the request are hit,
    and 0 is every call, as in :class:`ldfi.fit.faults.Fault`.
    """

    kind: FaultKind
    delay_ms: int = 0
    first: int = 0


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


@lru_cache(maxsize=8192)
def point_hash(name: str) -> str:
    """Make eight characters that stand for a point's name: SHA-256, first 48 bits, base64url."""
    return urlsafe_b64encode(hashlib.sha256(name.encode()).digest()[:6]).decode()


def encode(
    keys: Keys,
    experiment: str,
    arm: Arm,
    expires: int,
    faults: Iterable[Fault],
    *,
    delay_ms: int = DEFAULT_DELAY_MS,
) -> str:
    """Sign a failure context. ``expires`` is in Unix seconds.

    Of several faults at one point only the strongest is written: an error before a delay, every
    call before the first few. Raises MalformedContext when it would not be read back.
    """
    parts = "~".join(_encode_fault(fault, delay_ms) for fault in _strongest(faults))
    payload = ".".join([_VERSION, keys.signing_id, experiment, arm[0], str(expires), parts])
    value = f"{payload}.{keys.sign(payload)}"
    if not _SHAPE.fullmatch(value) or len(value) > MAX_LENGTH:
        raise MalformedContext(
            f"this does not fit a failure context: experiment {experiment!r} (up to 64 letters, "
            f"digits, - and _), expiry {expires}, delay {delay_ms} ms (1 to 9,999,999), "
            f"{len(value)} of at most {MAX_LENGTH} characters"
        )
    return value


def room(kinds: Collection[FaultKind], *, delay_ms: int = DEFAULT_DELAY_MS) -> int:
    """Return how many faults of these kinds fit into one context, whatever else it says.

    Of faults at the first calls only, a few less: each takes up to three characters more.
    """
    longest = max((len(_encode_fault(Fault("", kind), delay_ms)) for kind in kinds), default=0)
    ids, expiry, mac = 16 + 64, 12, 22
    around = len(".".join([_VERSION, "", "", "t", "", "", ""])) + ids + expiry + mac
    return (MAX_LENGTH - around + len("~")) // (longest + len("~"))


def _strongest(faults: Iterable[Fault]) -> list[Fault]:
    """Keep one fault a point, in a fixed order: a reader refuses a point that is named twice."""
    weakest_first = sorted(faults, key=lambda f: (f.kind == "error", f.first == 0, f.first))
    return sorted({point_hash(fault.point): fault for fault in weakest_first}.values())


def _encode_fault(fault: Fault, delay_ms: int) -> str:
    delay = str(delay_ms) if fault.kind == "delay" else ""
    occurrence = f"n{fault.first}" if fault.first else ""
    return f"{fault.kind[0]}{point_hash(fault.point)}{delay}{occurrence}"


def decode(keys: Keys, value: str, now: float) -> FailureContext:
    """Verify and read a failure context. ``now`` is in Unix seconds.

    Raises MalformedContext, ForgedContext or ExpiredContext; the MAC is checked before anything
    else is believed.
    """
    match = _SHAPE.fullmatch(value) if len(value) <= MAX_LENGTH else None
    if match is None:
        raise MalformedContext(f"not a failure context of version {_VERSION}: {value[:80]!r}")
    if not keys.verify(value[: match.start("mac") - 1], match["key"], match["mac"]):
        raise ForgedContext(f"failure context of key {match['key']!r} does not verify")
    expires = int(match["expiry"])
    if expires <= now:
        raise ExpiredContext(f"failure context expired {now - expires:.0f} s ago")
    injections = _decode_faults(match["faults"])
    return FailureContext(match["experiment"], _ARMS[match["arm"]], expires, injections)


def _decode_faults(text: str) -> Mapping[str, Injection]:
    """Read a list of faults of the right shape. Raises MalformedContext where a point recurs."""
    injections: dict[str, Injection] = {}
    for fault in _FAULT.finditer(text):
        if fault["hash"] in injections:
            raise MalformedContext(f"failure context with two faults at point {fault['hash']}")
        injections[fault["hash"]] = Injection(
            _KINDS[fault["kind"]], int(fault["delay"] or 0), int(fault["first"] or 0)
        )
    return MappingProxyType(injections)
