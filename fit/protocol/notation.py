"""How a failure context writes its faults, in each version.

**Version 1** knows ``error`` and ``delay``. Faults are joined by ``~``; each is a letter (``e``,
``d``), eight characters of hash of the point's name, for a delay its length in milliseconds, and
where only the first calls fail, ``n`` and their number: ``er-hHe0xNn2~d9rcpxU0P1500``.

**Version 2** knows every kind. Points that fail alike stand together: how they fail, ``~``, their
hashes one behind the other, and groups are joined by ``~``, too. How is the kind, with ``-`` for
its colon; for a delay and a timeout ``-`` and the longest that it may hang, in milliseconds; where
only the first calls fail, ``-n`` and their number:
``refused~9rcpxU0PyKID_unU~status-503-n2~r-hHe0xN``.

**Later versions** are version 2 with more kinds: ``slow-2000``, a body that comes over so many
milliseconds, is of version 3. In which version each begins says ``kinds.json``.

Each says one length. Where a fault wants lengths drawn at random, the writer draws one for each
point, and readers never know.
"""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64encode
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from ldfi.fit.protocol.errors import MalformedContext
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.kinds import (
    KINDS,
    LATE,
    FaultKind,
    family,
    kind_of,
    late,
    lengths,
    takes_argument,
    version_of,
)
from ldfi.fit.protocol.lengths import drawn

_LETTERS: Final[dict[str, FaultKind]] = {"e": "error", "d": "delay"}
_ONE = r"(?:e[\w-]{8}|d[\w-]{8}[1-9][0-9]{0,6})(?:n[1-9][0-9]?)?"
_LIST = re.compile(rf"(?:{_ONE}(?:~{_ONE})*)?", re.ASCII)
_FAULT = re.compile(
    r"(?P<kind>[ed])(?P<hash>[\w-]{8})(?P<delay>[0-9]*)(?:n(?P<first>[0-9]+))?", re.ASCII
)
_GROUPS = re.compile(r"(?:[\w-]+~(?:[\w-]{8})+(?:~[\w-]+~(?:[\w-]{8})+)*)?", re.ASCII)
_MILLISECONDS = re.compile(r"[1-9][0-9]{0,6}", re.ASCII)
_COUNT = re.compile(r"n[1-9][0-9]?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Injection:
    """What a failure context asks of one point.

    ``delay_ms`` is the longest it may hang, or over what a ``slow`` body comes, of which the kind
    says no more than its word. ``first``: only so many calls of the request are hit,
    and 0 is every call, as in :class:`ldfi.fit.protocol.faults.Fault`.
    """

    kind: FaultKind
    delay_ms: int = 0
    first: int = 0


@lru_cache(maxsize=8192)
def point_hash(name: str) -> str:
    """Make eight characters that stand for a point's name: SHA-256, first 48 bits, base64url."""
    return urlsafe_b64encode(hashlib.sha256(name.encode()).digest()[:6]).decode()


def written(faults: Iterable[Fault], delay_ms: int, draw_key: str = "") -> tuple[str, str]:
    """Return the lowest version that can express the faults, and their text. ``draw_key`` seeds the
    lengths that are drawn."""
    chosen = [(fault, length_of(fault, delay_ms, draw_key)) for fault in _strongest(faults)]
    if all(family(fault.kind) in KINDS for fault, _ in chosen):
        return "1", "~".join(_in_one(fault, length) for fault, length in chosen)
    groups: defaultdict[str, str] = defaultdict(str)
    for fault, length in chosen:
        groups[way(fault, length)] += point_hash(fault.point)
    version = max("2", *(version_of(fault.kind) for fault, _ in chosen))
    return version, "~".join(f"{how}~{hashes}" for how, hashes in groups.items())


def length_of(fault: Fault, delay_ms: int, draw_key: str) -> int:
    """Return how many milliseconds a fault may take: ``delay_ms``, which is the longest, or less
    where its kind says so."""
    wanted = lengths(fault.kind)
    if not wanted:
        return delay_ms
    return min(max(1, round(1000 * drawn(wanted, f"{draw_key}\n{fault.point}"))), delay_ms)


def draw_key_of(faults: Iterable[Fault]) -> str:
    """Name the lot of a run that shall go the same way whenever the same faults are tried."""
    return "\n".join(sorted(map(str, faults)))


def readable(version: str, text: str) -> bool:
    """Return whether this list of faults is of the grammar of its version."""
    if version == "1":
        return _LIST.fullmatch(text) is not None
    if not text:
        return True
    hows = text.split("~")[::2]
    injections = (_injection(version, how) for how in hows)
    return _GROUPS.fullmatch(text) is not None and None not in injections


def read(version: str, text: str) -> Mapping[str, Injection]:
    """Read a readable list of faults. Raises MalformedContext where a point recurs."""
    found: dict[str, Injection] = {}
    for point, injection in _read_one(text) if version == "1" else _read_groups(version, text):
        if point in found:
            raise MalformedContext(f"failure context with two faults at point {point}")
        found[point] = injection
    return MappingProxyType(found)


def _strongest(faults: Iterable[Fault]) -> list[Fault]:
    """Keep one fault a point, in a fixed order: a reader refuses a point that is named twice."""
    weakest_first = sorted(faults, key=lambda f: (_strength(f.kind), f.kind, f.first == 0, f.first))
    return sorted({point_hash(fault.point): fault for fault in weakest_first}.values())


def _strength(kind: FaultKind) -> int:
    """Rank a kind: a delay may be outlasted, one that says a length is shorter, a timeout comes
    late, ``error`` says the least of how it looks and so is what is kept."""
    return 0 if lengths(kind) else {"delay": 1, "timeout": 2, "error": 4}.get(kind, 3)


def _in_one(fault: Fault, delay_ms: int) -> str:
    delay = str(delay_ms) if late(fault.kind) else ""
    occurrence = f"n{fault.first}" if fault.first else ""
    return f"{fault.kind[0]}{point_hash(fault.point)}{delay}{occurrence}"


def way(fault: Fault, delay_ms: int) -> str:
    """Write how a group of points fails, from version 2 on."""
    if late(fault.kind):
        parts = [family(fault.kind), str(delay_ms)]
    else:
        parts = [fault.kind.replace(":", "-")]
    if fault.first:
        parts.append(f"n{fault.first}")
    return "-".join(parts)


def _read_one(text: str) -> Iterator[tuple[str, Injection]]:
    for fault in _FAULT.finditer(text):
        kind, first = _LETTERS[fault["kind"]], int(fault["first"] or 0)
        yield fault["hash"], Injection(kind, int(fault["delay"] or 0), first)


def _read_groups(version: str, text: str) -> Iterator[tuple[str, Injection]]:
    parts = text.split("~") if text else []
    for how, hashes in zip(parts[::2], parts[1::2], strict=True):
        injection = _injection(version, how)
        if injection is None:
            raise MalformedContext(f"{how!r} is no way to fail")
        for at in range(0, len(hashes), 8):
            yield hashes[at : at + 8], injection


@lru_cache(maxsize=1024)
def _injection(version: str, how: str) -> Injection | None:
    """Read how a group fails; None for what is no kind of fault of this version."""
    word, *rest = how.split("-")
    delay_ms, kind = 0, word
    if word in LATE:
        if version_of(word) > version or not rest or not _MILLISECONDS.fullmatch(rest[0]):
            return None
        delay_ms, rest = int(rest[0]), rest[1:]
    elif takes_argument(word) and rest:
        kind, rest = f"{word}:{rest[0]}", rest[1:]
    if not delay_ms and (not _is_kind(kind) or version_of(kind) > version):
        return None
    if not rest:
        return Injection(kind, delay_ms)
    if len(rest) > 1 or not _COUNT.fullmatch(rest[0]):
        return None
    return Injection(kind, delay_ms, int(rest[0][1:]))


def _is_kind(text: str) -> bool:
    try:
        kind_of(text)
    except ValueError:
        return False
    return True
