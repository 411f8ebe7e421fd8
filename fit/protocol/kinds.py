"""The kinds of fault: how a call fails, as its caller sees it.

They stand above the rooms, so that whoever only names them loads no room for that. A kind is a
word, for some words with an argument: ``refused``, ``status:503``, ``grpc:UNAVAILABLE``,
``sql:deadlock``, ``exception:KeyError``. A ``delay`` has one where its length is drawn at random
(:mod:`ldfi.fit.protocol.lengths`): ``delay:0.5..2``, ``delay:p50=0.8..p99=3``. ``slow:2`` says over
how many seconds a body comes, or by what that is drawn: ``slow:0.5..2``. What a point can have
natively is told by :mod:`ldfi.fit.protocol.native`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, Literal, get_args

from ldfi.fit.protocol.lengths import lengths_of

FaultKind = str
"""A kind as it is written, one that :func:`kind_of` reads."""

UsualKind = Literal["error", "delay"]
KINDS: Final[tuple[UsualKind, ...]] = get_args(UsualKind)
"""The kinds that every point has: what is tried where nobody asks for others."""

WORDS: Final = ("refused", "reset", "timeout", "empty", "truncated", "corrupt")
"""The kinds besides :data:`KINDS` that stand alone."""

OUTLASTED: Final = frozenset({"delay", "slow"})
"""The kinds with which a call goes well in the end, for whoever waits that long."""

LATE: Final = OUTLASTED | {"timeout"}
"""The kinds that take their time, so that it matters whether anybody waits."""

GRPC_CODES: Final = (
    *("CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND"),
    *("ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION"),
    *("ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"),
    "UNAUTHENTICATED",
)
"""gRPC's status codes 1 to 16, in their order."""

SQL: Final = ("deadlock", "serialization", "lost", "readonly")
REDIS: Final = ("loading", "readonly", "lost")
MAX_EXCEPTION: Final = 40
"""Characters that the name of an exception may have."""

_CHOICES: Final = {"grpc": GRPC_CODES, "sql": SQL, "redis": REDIS}
_STATUS: Final = re.compile(r"[45][0-9]{2}", re.ASCII)
_NAME: Final = re.compile(rf"[A-Za-z_][A-Za-z0-9_]{{0,{MAX_EXCEPTION - 1}}}", re.ASCII)
_FORMS: Final = {
    "status": "a status from 400 to 599, as in status:503",
    "grpc": f"one of gRPC's codes, {', '.join(GRPC_CODES)}",
    "sql": f"one of {', '.join(SQL)}",
    "redis": f"one of {', '.join(REDIS)}",
    "exception": f"the name of an exception's class, of at most {MAX_EXCEPTION} characters",
    "slow": "seconds, as in slow:2, or lengths that are drawn, as in slow:0.5..2",
}

FAMILIES: Final = (*KINDS, *WORDS, *_FORMS)
"""The words with which a kind begins."""


@lru_cache(maxsize=4096)
def kind_of(text: str) -> FaultKind:
    """Read a kind. Raises ValueError, with what could stand there, for what is none."""
    family, colon, argument = text.partition(":")
    form = _FORMS.get(family)
    if form is None:
        if family not in FAMILIES:
            raise ValueError(f"{family!r} is not a kind of fault; the kinds are {_all()}")
        if colon and family != "delay":
            raise ValueError(f"{text!r} is not a kind of fault: {family} stands alone")
        if colon:
            _check_drawn(text, argument)
    elif not _fits(family, argument):
        raise ValueError(f"{text!r} is not a kind of fault: after {family}: comes {form}")
    return text


def family(kind: FaultKind) -> str:
    """Return the word with which a kind begins."""
    return kind.partition(":")[0]


def takes_argument(word: str) -> bool:
    """Return whether a kind that begins with this word always says more after a colon."""
    return word in _FORMS


def late(kind: FaultKind) -> bool:
    """Return whether a kind takes its time, so that it matters whether anybody waits."""
    return family(kind) in LATE


def outlasted(kind: FaultKind) -> bool:
    """Return whether a call that is hit so goes well in the end, for whoever waits that long."""
    return family(kind) in OUTLASTED


def lengths(kind: FaultKind) -> str:
    """Return what a kind says of how long it takes: by what a delay is drawn, over what a slow
    body comes; empty for all other kinds."""
    word, _, argument = kind.partition(":")
    return argument if word in OUTLASTED else ""


def draws(kind: FaultKind) -> bool:
    """Return whether another length is drawn for each request."""
    return _drawn(lengths(kind))


def longest(kinds: Iterable[FaultKind]) -> float:
    """Return the longest length, in seconds, that these kinds name; 0 where none names any."""
    return max((lengths_of(each).longest for each in map(lengths, kinds) if each), default=0.0)


def shown_as(fault: str) -> str:
    """Return what traces say of a fault that has fired: of one that takes its time not how long."""
    kind, at, point = fault.partition("@")
    return f"{family(kind)}{at}{point}" if lengths(kind) else fault


@lru_cache(maxsize=256)
def alike_of(text: str) -> frozenset[FaultKind]:
    """Read which kinds are to be taken as alike: ``5xx``, ``4xx``, or some joined by ``+``.

    Raises ValueError for anything else.
    """
    if text in ("4xx", "5xx"):
        return frozenset(f"status:{text[0]}{code:02}" for code in range(100))
    kinds = frozenset(map(kind_of, text.split("+")))
    # What may be outlasted is like nothing else
    if len(kinds) < 2 or any(map(outlasted, kinds)):
        raise ValueError(f"{text!r} takes no kinds as alike; write 4xx, 5xx or refused+reset")
    return kinds


def _fits(family: str, argument: str) -> bool:
    if family == "status":
        return _STATUS.fullmatch(argument) is not None
    if family == "exception":
        return _NAME.fullmatch(argument) is not None
    return _says_lengths(argument) if family == "slow" else argument in _CHOICES[family]


def _says_lengths(argument: str) -> bool:
    try:
        lengths_of(argument)
    except ValueError:
        return False
    return True


def _drawn(lengths: str) -> bool:
    return ".." in lengths


def _check_drawn(kind: str, argument: str) -> None:
    try:
        lengths_of(argument)
    except ValueError as problem:
        raise ValueError(f"{kind!r} is not a kind of fault: {problem}") from None
    if not _drawn(argument):
        raise ValueError(
            f"{kind!r} is not a kind of fault: a fixed delay has no length in its kind; "
            f"write delay, or lengths that are drawn: delay:0.5..{argument}"
        )


def _all() -> str:
    return ", ".join([*KINDS, *WORDS, *(f"{word}:…" for word in ("delay", *_FORMS))])
