"""What a certificate looks like: every field, its type and its range, and no field besides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from ldfi.solver.check.effort import Effort

FORMAT = "ldfi-certificate/2"
MANY = 1_000_000_000
"""The largest number of anything."""
SAID = 5
"""Problems that are said; whoever has as many is not helped by more."""

Field: TypeAlias = Callable[[Any, str], Iterator[str]]


def malformed(data: dict[str, Any], effort: Effort) -> list[str]:
    """Say where it does not look as it should, at most :data:`SAID` places."""
    problems: list[str] = []
    for each in _document(data, effort):
        problems.append(each)
        if len(problems) == SAID:
            break
    return problems


def _document(data: dict[str, Any], effort: Effort) -> Iterator[str]:
    first = list(_axioms_shape(data.get("axioms"), "axioms"))
    if first:
        yield from first[:1] if "axioms" in data else ["axioms are missing"]
        return
    known = frozenset(data["axioms"]["language"]["faults"])
    effort.weigh(len(known))
    sets = each_of(names(known), distinct=_sets_are_distinct)
    yield from _axioms(known)(data["axioms"], "axioms")
    yield from fields(
        {
            "format": anything,
            "axioms": anything,
            "evidence": each_of(_run(known), distinct=_numbered),
            "findings": sets,
            "minimal_failing_sets": sets,
            "larger_findings": sets,
            "open": sets,
            "open_complete": boolean,
            "inconclusive": each_of(fields({"faults": names(known), "attempts": number(1)})),
            "violations": each_of(fields({"kind": text, "faults": names(known)})),
            "rechecks": fields({"tried": number(), "violated": number()}),
            "experiments": number(),
            "lower_bound": fields(
                {
                    "failing": number(),
                    "packing": sets,
                    "total": number(),
                    "ratio": optional(finite),
                }
            ),
            "doubt": optional(
                fields(
                    {
                        "survived": number(),
                        "survived_once": number(),
                        "tried_once": number(),
                        "unsettled": sets,
                    }
                )
            ),
            "derivation": fields(
                {
                    "steps": _steps,
                    "firm": optional(_steps),
                    "minimal": each_of(
                        fields({"run": number(1), "needed": mapping(known, number(1))})
                    ),
                    "larger": _numbers,
                }
            ),
        }
    )(data, "")


def _axioms_shape(value: Any, where: str) -> Iterator[str]:
    """Say whether the names of faults can be read at all, on which all else depends."""
    if not isinstance(value, dict):
        yield f"{where} is no object"
    elif not isinstance(value.get("language"), dict):
        yield f"{where}.language is no object"
    else:
        faults = value["language"].get("faults")
        yield from texts(faults, f"{where}.language.faults")


def _axioms(known: frozenset[str]) -> Field:
    sets = each_of(some(names(known)), distinct=_sets_are_distinct)
    return fields(
        {
            "bounds": fields(
                {
                    "max_size": optional(number(1)),
                    "protected": names(known),
                    "exclusions": sets,
                    "down": names(known),
                }
            ),
            "impossible": sets,
            "language": fields(
                {
                    "faults": anything,
                    "domains": mapping(known, names(known)),
                    "implications": each_of(
                        fields(
                            {
                                "stronger": name(known),
                                "weaker": name(known),
                                "run": optional(number(1)),
                            }
                        )
                    ),
                }
            ),
            "deterministic": boolean,
            "monotone": boolean,
            "believed": fields({"survived": number(1), "failed": number(1)}),
        }
    )


def _run(known: frozenset[str]) -> Field:
    faults, proof = names(known), {"proof": an_object}
    start: dict[str, Field] = {"number": number(1), "origin": text, "failed": faults}
    shapes = {
        "caution": fields({**start, "support": faults, "among": one_of("both", "all", "firm")}),
        "observed": fields(
            {**start, "support": faults, "traces": texts, "count": number(1)}, proof
        ),
        "injected": fields(
            {
                **start,
                "support": optional(faults),
                "traces": texts,
                "injected": faults,
                "good": optional(boolean),
                "firm": either(boolean, faults),
                "recheck": boolean,
                "caused": each_of(_pair(known)),
            },
            proof,
        ),
    }

    def check(value: Any, where: str) -> Iterator[str]:
        origin = value.get("origin") if isinstance(value, dict) else None
        if not isinstance(origin, str) or origin not in shapes:
            yield f"{where} is no run of a known origin"
        else:
            yield from shapes[origin](value, where)

    return check


def _pair(known: frozenset[str]) -> Field:
    def check(value: Any, where: str) -> Iterator[str]:
        if type(value) is not list or len(value) != 2:
            yield f"{where} is no pair of faults"
        else:
            for each in value:
                yield from name(known)(each, where)

    return check


def fields(required: Mapping[str, Field], more: Mapping[str, Field] | None = None) -> Field:
    """Make a check for an object with these fields, perhaps some more, and no others."""
    possible = {**required, **(more or {})}

    def check(value: Any, where: str) -> Iterator[str]:
        if type(value) is not dict:
            yield f"{where or 'the certificate'} is no object"
            return
        for key in value:
            if key not in possible:
                yield f"{_path(where, key)} is no field of a certificate"
        for key in required:
            if key not in value:
                yield f"{_path(where, key)} is missing"
        for key, field in possible.items():
            if key in value:
                yield from field(value[key], f"{where}.{key}" if where else key)

    return check


def each_of(item: Field, distinct: Field | None = None) -> Field:
    """Make a check for a list of these; ``distinct`` looks at the list as a whole afterwards."""

    def check(value: Any, where: str) -> Iterator[str]:
        if type(value) is not list:
            yield f"{where} is no list"
            return
        sound = True
        for position, each in enumerate(value):
            for problem in item(each, where):
                sound = False
                yield f"{problem} (number {position + 1} of {len(value)})"
        if sound and distinct is not None:
            yield from distinct(value, where)

    return check


def mapping(known: frozenset[str], item: Field) -> Field:
    """Make a check for an object from names of the language to these."""

    def check(value: Any, where: str) -> Iterator[str]:
        if type(value) is not dict:
            yield f"{where} is no object"
            return
        for key, each in value.items():
            if key not in known:
                yield f"{where} names {_said(key)}, which is not in the language"
            yield from item(each, _path(where, key))

    return check


def names(known: frozenset[str]) -> Field:
    """Make a check for a list of distinct names of the language."""

    def check(value: Any, where: str) -> Iterator[str]:
        yield from texts(value, where)
        if type(value) is list and set(map(type, value)) <= {str} and not known.issuperset(value):
            stranger = next(each for each in value if each not in known)
            yield f"{where} names {_said(stranger)}, which is not in the language"

    return check


def name(known: frozenset[str]) -> Field:
    """Make a check for one name of the language."""

    def check(value: Any, where: str) -> Iterator[str]:
        if type(value) is not str or value not in known:
            yield f"{where} is no name in the language"

    return check


def some(item: Field) -> Field:
    """Make a check for a list that is not empty."""

    def check(value: Any, where: str) -> Iterator[str]:
        yield from item(value, where) if value != [] else [f"{where} has an empty set"]

    return check


def optional(item: Field) -> Field:
    """Make a check for null, or this."""

    def check(value: Any, where: str) -> Iterator[str]:
        if value is not None:
            yield from item(value, where)

    return check


def either(one: Field, other: Field) -> Field:
    """Make a check for one or the other."""

    def check(value: Any, where: str) -> Iterator[str]:
        if any(one(value, where)):
            yield from other(value, where)

    return check


def one_of(*values: str) -> Field:
    """Make a check for one of these words."""

    def check(value: Any, where: str) -> Iterator[str]:
        if type(value) is not str or value not in values:
            yield f"{where} is none of {', '.join(values)}"

    return check


def number(least: int = 0) -> Field:
    """Make a check for a whole number from here on."""

    def check(value: Any, where: str) -> Iterator[str]:
        if type(value) is not int or not least <= value <= MANY:
            yield f"{where} is no whole number from {least} to {MANY}"

    return check


def anything(_value: Any, _where: str) -> Iterator[str]:
    """Accept anything: it is looked at elsewhere."""
    return iter(())


def an_object(value: Any, where: str) -> Iterator[str]:
    """Accept an object, whatever is in it."""
    if type(value) is not dict:
        yield f"{where} is no object"


def boolean(value: Any, where: str) -> Iterator[str]:
    """Accept true and false."""
    if type(value) is not bool:
        yield f"{where} is neither true nor false"


def finite(value: Any, where: str) -> Iterator[str]:
    """Accept a number that is one, and not below zero."""
    if type(value) not in (int, float) or not 0 <= value <= MANY or math.isnan(value):
        yield f"{where} is no number from 0 to {MANY}"


def text(value: Any, where: str) -> Iterator[str]:
    """Accept a text."""
    if type(value) is not str:
        yield f"{where} is no text"


def texts(value: Any, where: str) -> Iterator[str]:
    """Accept a list of distinct texts."""
    if type(value) is not list or not set(map(type, value)) <= {str}:
        yield f"{where} is no list of texts"
    elif len(set(value)) < len(value):
        yield f"{where} names something twice"


def _steps(value: Any, where: str) -> Iterator[str]:
    if type(value) is not list or not set(map(type, value)) <= {int, str, list}:
        yield f"{where} is no list of steps"


def _numbers(value: Any, where: str) -> Iterator[str]:
    if type(value) is not list or not set(map(type, value)) <= {int}:
        yield f"{where} is no list of whole numbers"


def _sets_are_distinct(value: list[list[str]], where: str) -> Iterator[str]:
    if len(set(map(frozenset, value))) < len(value):
        yield f"{where} names a set twice"


def _numbered(value: list[dict[str, Any]], where: str) -> Iterator[str]:
    if [run["number"] for run in value] != list(range(1, len(value) + 1)):
        yield f"{where} is not numbered from 1 on"


def _path(where: str, key: str) -> str:
    return f"{where}.{_said(key)}" if where else _said(key)


def _said(name: str) -> str:
    return repr(name if len(name) <= 200 else name[:200] + "…")
