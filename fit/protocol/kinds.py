"""The kinds of fault: how a call fails, as its caller sees it.

They stand above the rooms, so that whoever only names them loads no room for that. A kind is a
word, for some words with an argument: ``refused``, ``status:503``, ``grpc:UNAVAILABLE``,
``sql:deadlock``, ``exception:KeyError``. A ``delay`` has one where its length is drawn at random
(:mod:`ldfi.fit.protocol.lengths`): ``delay:0.5..2``, ``delay:p50=0.8..p99=3``. ``slow:2`` says over
how many seconds a body comes, or by what that is drawn: ``slow:0.5..2``. What a point can have
natively is told by :mod:`ldfi.fit.protocol.native_kinds`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal, get_args

from ldfi.fit.protocol.lengths import lengths_of

FaultKind = str
"""A kind as it is written, one that :func:`kind_of` reads."""

RECORDS: Final[dict[str, dict[str, Any]]] = json.loads(
    Path(__file__).with_name("kinds.json").read_bytes()
)["kinds"]
"""The word with which a kind begins → what is known of it, for all languages and pages:

``meaning``: for people. ``words``: verbs; ``happens`` to a call, with an argument
``happens_with``; what ``one`` callee does, and ``many``; ``short``; what a call was ``made`` to do.
``version``: of the first failure context that can say it. ``argument``: what comes after a colon
(``abnf``: as grammars have it).
``points``: the protocols that have it natively (:mod:`ldfi.fit.protocol.native_kinds`); ``body``:
only where an answer has one; ``named``: only where a host has a name.
``late``: it takes its time; ``outlasted``: and the call goes well in the end. ``unasked``: the
call never came to its callee. ``passes``: it often passes in a moment. ``nobody``: nobody answered.
``status``: of the answer of HTTP that it is. ``answer``: its ``body``, a character a byte, of which
as many bytes as are ``missing`` never come. ``natural``: classes of exceptions that are read as
this kind where nobody injected anything. ``connecting``: a connection cannot be made, and what
each language and library makes of that. ``clients``: what callers get, by client.
"""


def words_with(flag: str) -> frozenset[str]:
    """Return the words of the kinds of which this is said."""
    return frozenset(word for word, record in RECORDS.items() if record.get(flag))


def spoken(form: str) -> dict[str, str]:
    """Return what is said in one form (of ``words``), by the words of the kinds that have it."""
    return {word: each["words"][form] for word, each in RECORDS.items() if form in each["words"]}


UsualKind = Literal["error", "delay"]
KINDS: Final[tuple[UsualKind, ...]] = get_args(UsualKind)
"""The kinds that every point has: what is tried where nobody asks for others."""

_ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    word: record["argument"]
    for word, record in RECORDS.items()
    if not record.get("argument", {"optional": True}).get("optional")
}

WORDS: Final = tuple(word for word in RECORDS if word not in {*KINDS, *_ARGUMENTS})
"""The kinds besides :data:`KINDS` that stand alone."""

OUTLASTED: Final = words_with("outlasted")
"""The kinds with which a call goes well in the end, for whoever waits that long."""

LATE: Final = words_with("late")
"""The kinds that take their time, so that it matters whether anybody waits."""

NAMED: Final = words_with("named")
"""The kinds that only happen where a host has a name, and is no address."""

VERSIONS: Final = tuple(map(str, range(1, 1 + max(each["version"] for each in RECORDS.values()))))
"""The versions of failure contexts."""

GRPC_CODES: Final[tuple[str, ...]] = tuple(_ARGUMENTS["grpc"]["among"])
"""gRPC's status codes 1 to 16, in their order."""

SQL: Final[tuple[str, ...]] = tuple(_ARGUMENTS["sql"]["among"])
REDIS: Final[tuple[str, ...]] = tuple(_ARGUMENTS["redis"]["among"])
MAX_EXCEPTION: Final[int] = _ARGUMENTS["exception"]["longest"]
"""Characters that the name of an exception may have."""

_PATTERNS: Final = {
    word: re.compile(argument["pattern"], re.ASCII)
    for word, argument in _ARGUMENTS.items()
    if "pattern" in argument
}

FAMILIES: Final = (*KINDS, *WORDS, *_ARGUMENTS)
"""The words with which a kind begins."""


@lru_cache(maxsize=4096)
def kind_of(text: str) -> FaultKind:
    """Read a kind. Raises ValueError, with what could stand there, for what is none."""
    family, colon, argument = text.partition(":")
    form = _ARGUMENTS.get(family)
    if form is None:
        if family not in FAMILIES:
            raise ValueError(f"{family!r} is not a kind of fault; the kinds are {_all()}")
        if colon and family != "delay":
            raise ValueError(f"{text!r} is not a kind of fault: {family} stands alone")
        if colon:
            _check_drawn(text, argument)
    elif not _fits(family, argument):
        raise ValueError(f"{text!r} is not a kind of fault: after {family}: comes {_says(form)}")
    return text


def family(kind: FaultKind) -> str:
    """Return the word with which a kind begins."""
    return kind.partition(":")[0]


def takes_argument(word: str) -> bool:
    """Return whether a kind that begins with this word always says more after a colon."""
    return word in _ARGUMENTS


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


def version_of(kind: FaultKind) -> str:
    """Return the first version of failure contexts that can say this kind."""
    return str(RECORDS[family(kind)]["version"])


def _fits(family: str, argument: str) -> bool:
    if family in _PATTERNS:
        return _PATTERNS[family].fullmatch(argument) is not None
    choices = _ARGUMENTS[family].get("among")
    return _says_lengths(argument) if choices is None else argument in choices


def _says(form: dict[str, Any]) -> str:
    return form["says"] + ", ".join(form.get("among", ()))  # type: ignore[no-any-return]


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
    return ", ".join([*KINDS, *WORDS, *(f"{word}:…" for word in ("delay", *_ARGUMENTS))])
