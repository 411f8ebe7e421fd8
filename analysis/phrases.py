"""Points, faults and what came of them in sentences that need no knowledge of ours to be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ldfi.analysis.words import happens, listed
from ldfi.fit.protocol.faults import DOWN
from ldfi.fit.protocol.kinds import spoken
from ldfi.fit.protocol.points import Point

_CALLS: Final = {
    "http": ("call to", "{operation} {template}"),
    "rpc": ("call to", "{operation} {template}"),
    "db": ("query to", "{operation} {template}"),
    "cache": ("look-up in the cache", "{operation} {peer}"),
    "message": ("message to", "{template}"),
}


def said_point(point: str, callees: Mapping[str, str] | None = None) -> str:
    """Say ``api's call to ratings (GET /titles/*)``; a name that is none of ours stays as it is."""
    read = Point.parse(point)
    callee = (callees or {}).get(point) or read.peer
    if read.kind == "function" and read.caller != "unknown":
        return f"{read.caller}'s {read.operation}()"
    if read.kind not in _CALLS:
        return point
    verb, detail = _CALLS[read.kind]
    what = detail.format(
        operation=read.operation,
        template=read.template if read.kind in {"http", "rpc"} else read.template.lstrip("/"),
        peer=read.peer,
    ).strip()
    target = "" if read.kind == "cache" else f" {callee or 'somewhere'}"
    return f"{read.caller}'s {verb}{target}" + (f" ({what})" if what else "")


def said_fault(fault: str, callees: Mapping[str, str] | None = None) -> str:
    """Say ``api's call to ratings (GET /titles/*) fails``; a fault domain ``is down``."""
    kind, _, where = fault.partition("@")
    if fault.startswith(DOWN):
        return f"all of {where} is down"
    return f"{said_point(where, callees)} {happens(kind)}"


INTERFERENCE: Final = (
    "Interference: others failed beside it, and none of the devices that met these failures did. "
    "An earlier version took that for harm."
)


def others_alone(verdict: str | None, counts: Mapping[str, Any]) -> bool:
    """Return whether an experiment is called harmful although no treated device failed: by a rule
    of earlier versions, for others that failed beside it. Today that is interference."""
    treated = counts.get("treatment") or {"devices": 0, "failures": 0}
    return verdict == "harmful" and treated["devices"] > 0 and not treated["failures"]


def said_outcome(counts: Mapping[str, Any], verdict: str | None = None) -> str:
    """Return what users saw: how many devices failed in either arm. Empty where nobody was treated.

    That all got what they asked for is said of what was tolerated, and of nothing else: where none
    has failed so far, or nobody knows, that is no promise.
    """
    if others_alone(verdict, counts):
        return INTERFERENCE
    treated, control = counts.get("treatment"), counts.get("control")
    if not treated or not control or not treated["devices"]:
        return ""
    met = "that met these failures"
    if treated["failures"]:
        met = f"{_of(treated)} {met} did not get what they asked for"
    elif verdict == "tolerated" and not counts.get("hurt") and not _beside(counts):
        met = f"Of {_devices(treated['devices'])} {met}, all got what they asked for"
    else:
        met = f"Of {_devices(treated['devices'])} {met}, none was seen to fail"
    if not control["devices"]:
        return f"{met}."
    if not control["failures"]:
        return f"{met}; of {_devices(control['devices'])} that did not meet them, none failed."
    too = " as well" if treated["failures"] else ""
    return f"{met}; of those that did not meet them, {_of(control)} failed{too}."


def _beside(counts: Mapping[str, Any]) -> int:
    """Count devices that nobody drew, that met these failures all the same, and failed."""
    hurt: int = (counts.get("others") or {}).get("hurt", 0)
    return hurt


def _of(arm: Mapping[str, Any]) -> str:
    if arm["failures"] == arm["devices"]:
        return f"All {_devices(arm['devices'])}" if arm["devices"] > 1 else "The one device"
    return f"{arm['failures']} of {_devices(arm['devices'])}"


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count:,} devices"


_ONE: Final = spoken("one") | {"down": "is down"}
_MANY: Final = spoken("many") | {"down": "are down"}


NAMED: Final = 3
"""Faults of a set that are named; of the others it is said how many they are."""


def said_shortly(
    faults: Iterable[str], callees: Mapping[str, str] | None = None, most: int = NAMED
) -> str:
    """Name a set of faults: ``license does not answer``, ``playlist and popular both fail``,
    ``a, b, c and 57 more all fail``; by who is called, as far as that tells points of the class
    apart. ``most``: that are named."""
    given = list(faults)
    shown, more = given[:most], len(given) - most
    by_verb: dict[tuple[str, str], list[str]] = {}
    for fault in shown:
        kind, _, where = fault.partition("@")
        name = where if fault.startswith(DOWN) else said_callee(where, callees or {}, given)
        by_verb.setdefault(_verbs(kind), []).append(name)
    rest = [f"{more:,} more"] if more > 0 else []
    if len({_verbs(fault.partition("@")[0]) for fault in given}) == 1:
        by_verb[_verbs(given[0].partition("@")[0])] += rest
        rest = []
    said = [_clause(verbs, names) for verbs, names in by_verb.items()]
    return listed([*said, *rest], most=len(said) + 1) or "nothing fails"


def _verbs(kind: str) -> tuple[str, str]:
    """Return what one that fails in this way does, and what several do."""
    word, _, what = kind.partition(":")
    one, many = _ONE.get(word, happens(kind)), _MANY.get(word, happens(kind))
    return one.format(what or "an error"), many.format(what or "an error")


def _clause(verbs: tuple[str, str], names: list[str]) -> str:
    one, many = verbs
    if len(names) == 1:
        return f"{names[0]} {one}"
    both = "both " if len(names) == 2 else "all "
    both = "" if many.startswith("do not") else both
    return f"{listed(names, most=len(names))} {both}{many}"


def said_callee(point: str, callees: Mapping[str, str], among: Iterable[str] = ()) -> str:
    """Name who is called, with what is asked where the class, or these faults, ask it several
    things."""
    read = Point.parse(point)
    if read.kind not in _CALLS or read.kind == "cache":
        return said_point(point, callees)
    name = callees.get(point) or read.peer
    if not name:
        return said_point(point, callees)
    others = {*callees, *(fault.partition("@")[2] for fault in among)} - {point}
    if not any((callees.get(each) or Point.parse(each).peer) == name for each in others):
        return name
    template = read.template if read.kind in {"http", "rpc"} else read.template.lstrip("/")
    asked = f"{read.operation} {template}".strip()
    return f"{name} ({asked})" if asked else name
