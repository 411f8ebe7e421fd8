"""The failure context: what travels with a request in W3C baggage and says what shall fail.

One baggage entry, ``fit``, self-contained, so that a service needs no connection to anybody::

    1.KEY.EXPERIMENT.ARM.EXPIRY.FAULTS.MAC

Only ``[A-Za-z0-9._~-]`` occur, since SDKs percent-encode all else and a proxy's expression on the
raw header would then silently miss. ``FAULTS`` are joined by ``~``; each is a letter (``e`` error,
``d`` delay), eight characters of hash of the point's name, and for a delay its length in
milliseconds. The MAC covers all that stands before it. A hundred faults take about 1.3 KB.

The hash of a name has 48 bits: two of a thousand points collide with a chance of 2·10⁻⁹.
"""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from fit.errors import ExpiredContext, ForgedContext, MalformedContext
from fit.faults import Fault, FaultKind
from fit.keys import Keys

Arm = Literal["treatment", "control"]

ENTRY: Final = "fit"
MAX_LENGTH: Final = 4096
DEFAULT_DELAY_MS: Final = 10_000

_VERSION = "1"
_ARMS: dict[str, Arm] = {"t": "treatment", "c": "control"}
_KINDS: dict[str, FaultKind] = {"e": "error", "d": "delay"}
_SHAPE = re.compile(
    r"1\.(?P<key>[A-Za-z0-9_-]{1,16})\.(?P<experiment>[A-Za-z0-9_-]{1,64})\.(?P<arm>[tc])"
    r"\.(?P<expiry>[0-9]{1,12})\.(?P<faults>[A-Za-z0-9_~-]*)\.(?P<mac>[A-Za-z0-9_-]{22})",
    re.ASCII,
)
_FAULT = re.compile(r"(?P<kind>[ed])(?P<hash>[A-Za-z0-9_-]{8})(?P<argument>[0-9]{0,7})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Injection:
    """What a failure context asks of one point. ``delay_ms`` is the longest it may hang."""

    kind: FaultKind
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class FailureContext:
    """A verified failure context. ``expires`` is in Unix seconds; ``injections`` by point hash."""

    experiment: str
    arm: Arm
    expires: int
    injections: Mapping[str, Injection]

    def at(self, point: str) -> Injection | None:
        """What shall happen (or, in the control arm, would happen) at the point of this name."""
        return self.injections.get(point_hash(point))


@lru_cache(maxsize=8192)
def point_hash(name: str) -> str:
    """Eight characters that stand for a point's name: SHA-256, first 48 bits, base64url."""
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
    """Sign a failure context. Raises MalformedContext when it would not be read back."""
    parts = "~".join(_encode_fault(fault, delay_ms) for fault in sorted(set(faults)))
    payload = ".".join([_VERSION, keys.signing_id, experiment, arm[0], str(expires), parts])
    value = f"{payload}.{keys.sign(payload)}"
    if not _SHAPE.fullmatch(value) or len(value) > MAX_LENGTH:
        raise MalformedContext(
            f"experiment {experiment!r} with {parts.count('~') + 1} faults does not fit a failure "
            f"context: {len(value)} of {MAX_LENGTH} characters, id of letters, digits, - and _"
        )
    return value


def _encode_fault(fault: Fault, delay_ms: int) -> str:
    argument = str(delay_ms) if fault.kind == "delay" else ""
    return f"{fault.kind[0]}{point_hash(fault.point)}{argument}"


def decode(keys: Keys, value: str, now: float) -> FailureContext:
    """Verify and read a failure context. ``now`` is in Unix seconds.

    Raises MalformedContext, ForgedContext or ExpiredContext; the MAC is checked before anything
    else is believed.
    """
    match = _SHAPE.fullmatch(value) if len(value) <= MAX_LENGTH else None
    if match is None:
        raise MalformedContext(f"not a failure context: {value[:80]!r}")
    if not keys.verify(value[: -len(match["mac"]) - 1], match["key"], match["mac"]):
        raise ForgedContext(f"failure context of key {match['key']!r} does not verify")
    expires = int(match["expiry"])
    if expires <= now:
        raise ExpiredContext(f"failure context expired {now - expires:.0f} s ago")
    injections = dict(map(_decode_fault, filter(None, match["faults"].split("~"))))
    return FailureContext(match["experiment"], _ARMS[match["arm"]], expires, injections)


def _decode_fault(text: str) -> tuple[str, Injection]:
    match = _FAULT.fullmatch(text)
    if match is None:
        raise MalformedContext(f"not a fault: {text!r}")
    delay_ms = int(match["argument"] or DEFAULT_DELAY_MS) if match["kind"] == "d" else 0
    return match["hash"], Injection(_KINDS[match["kind"]], delay_ms)
