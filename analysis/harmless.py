"""What traffic has proved harmless: failures under which users got what they asked for.

Only requests count of which somebody wrote down how they ended. A status of 200 proves nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ldfi.analysis.names import Names
from ldfi.analysis.reasoning import survived_in
from ldfi.analysis.summary import Proved
from ldfi.analysis.suspects import suspected
from ldfi.analysis.words import counted, happens, listed
from ldfi.lineage.classes import RequestClass
from ldfi.lineage.shapes import Shape


@dataclass(frozen=True, slots=True)
class _Survived:
    shape: Shape
    faults: tuple[str, ...]
    told: bool
    instead: frozenset[str]


def harmless(classes: Iterable[RequestClass], names: Names) -> tuple[Proved, ...]:
    """Return failures seen in requests known to have gone well, and in none that failed."""
    counts: Counter[tuple[str, bool]] = Counter()
    faults: dict[tuple[str, bool], set[str]] = defaultdict(set)
    instead: dict[tuple[str, bool], set[str]] = defaultdict(set)
    where: dict[tuple[str, bool], set[str]] = defaultdict(set)
    for each in classes:
        for found in (*_survived(each), *_recovered(each)):
            key = _said(found, names), found.told
            counts[key] += found.shape.known
            faults[key].update(found.faults)
            instead[key].update(map(names.service, found.instead))
            where[key].add(each.name)
    return tuple(
        Proved(
            faults=tuple(sorted(faults[key])),
            services=tuple(sorted({_service(fault, key[1], names) for fault in faults[key]})),
            requests=requests,
            told=key[1],
            instead=tuple(sorted(instead[key])),
            says=_sentence(key, requests, sorted(where[key]), sorted(instead[key])),
        )
        for key, requests in sorted(counts.items(), key=lambda count: (-count[1], count[0]))
    )


def _sentence(key: tuple[str, bool], requests: int, where: list[str], instead: list[str]) -> str:
    said, told = key
    went = f"{counted(requests, 'request')} of {listed(where, 2)} went well all the same"
    known = ", as the outcomes tell" if told else ""
    return f"{said}: {went}{known}" + (f"; {listed(instead)} stood in" if instead else "")


def _survived(each: RequestClass) -> Iterator[_Survived]:
    hurt = [(frozenset(points), shape.told) for shape, points in suspected(each)]
    blamed = {points for points, _ in hurt if points}
    to_blame = {told for _, told in hurt if told}
    usual = {p for s in each.shapes if s.teaches for p in s.lineage.called}
    for shape in each.shapes:
        if shape.outcome != "good" or not shape.known:
            continue
        faults, origin = survived_in(shape)
        points = {fault.partition("@")[2] for fault in faults}
        told = origin == "told"
        denied = any(lost <= points for lost in blamed)
        denied |= told and any(lost <= set(faults) for lost in to_blame)
        if faults and not denied:
            new = shape.lineage.called - usual - points if usual else frozenset()
            yield _Survived(shape, faults, told, new)


def _recovered(each: RequestClass) -> Iterator[_Survived]:
    """List failures after or beside which another call to the same point succeeded."""
    for shape in each.shapes:
        again = shape.lineage.failed & shape.lineage.support
        if shape.outcome == "good" and shape.known and again:
            yield _Survived(shape, tuple(f"again@{p}" for p in sorted(again)), False, frozenset())


def _said(found: _Survived, names: Names) -> str:
    return listed(dict.fromkeys(_fault(fault, found.told, names) for fault in found.faults))


def _fault(fault: str, told: bool, names: Names) -> str:
    kind, _, point = fault.partition("@")
    if kind == "again":
        return f"{names.service(point)} fails, and another call to it succeeds"
    service = _service(fault, told, names)
    some = "a call of " if told and "#" in point else ""
    return f"{some}{service} {happens(kind)}"


def _service(fault: str, told: bool, names: Names) -> str:
    return names.told(fault) if told else names.service(fault.partition("@")[2])
