"""What a certificate looks like: every field, its type and its range, and no field besides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ldfi.checker.solving.effort import Effort

FORMAT = "ldfi-certificate/2"
MANY = 1_000_000_000
"""The largest number of anything."""

Field: TypeAlias = Callable[[Any], str | None]
"""Says what is wrong with a value, behind the path to the place; None if nothing is."""


def malformed(data: dict[str, Any], effort: Effort) -> str | None:
    """Return where it does not look as it should; None if it does."""
    problem = _language_shape(data.get("axioms"))
    if problem is not None:
        return f"axioms{problem}"
    known = frozenset(data["axioms"]["language"]["faults"])
    effort.weigh(len(known))
    problem = _document(known)(data)
    return None if problem is None else problem.removeprefix(".")


def _language_shape(value: Any) -> str | None:
    """Return whether the names of faults can be read at all, on which all else depends."""
    if type(value) is not dict:
        return " is not an object"
    if type(value.get("language")) is not dict:
        return ".language is not an object"
    problem = texts(value["language"].get("faults"))
    return None if problem is None else f".language.faults{problem}"


def _document(known: frozenset[str]) -> Field:
    faults, sets = names(known), each_of(names(known), distinct=_sets_are_distinct)
    needed = fields({"run": number(1), "needed": mapping(known, number(1))})
    return fields(
        {
            "format": anything,
            "axioms": _axioms(known),
            "evidence": each_of(_run(known), distinct=_numbered),
            "findings": sets,
            "minimal_failing_sets": sets,
            "larger_findings": sets,
            "open": sets,
            "open_complete": boolean,
            "inconclusive": each_of(fields({"faults": faults, "attempts": number(1)})),
            "violations": each_of(fields({"kind": text, "faults": faults})),
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
                    "minimal": each_of(needed),
                    "larger": _numbers,
                }
            ),
        },
        {"unseen": _unseen},
    )


def _axioms(known: frozenset[str]) -> Field:
    faults, one = names(known), name(known)
    sets = each_of(some(faults), distinct=_sets_are_distinct)
    implication = fields({"stronger": one, "weaker": one, "run": optional(number(1))})
    presumed = each_of(fields({"faults": some(faults), "of": some(faults)}))
    return fields(
        {
            "bounds": fields(
                {
                    "max_size": optional(number(1)),
                    "protected": faults,
                    "exclusions": sets,
                    "down": faults,
                },
                {"presumed": presumed, "no_injector": mapping(known, text)},
            ),
            "impossible": sets,
            "language": fields(
                {
                    "faults": anything,
                    "domains": mapping(known, faults),
                    "implications": each_of(implication),
                }
            ),
            "deterministic": boolean,
            "monotone": boolean,
            "believed": fields({"survived": number(1), "failed": number(1)}),
        }
    )


def _run(known: frozenset[str]) -> Field:
    faults, proof = names(known), {"proof": an_object}
    start: dict[str, Field] = {"number": number(1), "origin": anything, "failed": faults}
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

    def check(value: Any) -> str | None:
        origin = value.get("origin") if type(value) is dict else None
        if type(origin) is not str or origin not in shapes:
            return " is not a run of a known origin"
        return shapes[origin](value)

    return check


def _pair(known: frozenset[str]) -> Field:
    def check(value: Any) -> str | None:
        if type(value) is list and len(value) == 2 and set(map(type, value)) == {str}:
            return None if known.issuperset(value) else " names what is not in the language"
        return " is not a pair of faults"

    return check


def fields(required: Mapping[str, Field], more: Mapping[str, Field] | None = None) -> Field:
    """Make a check for an object with these fields, perhaps some more, and no others."""
    possible = {**required, **(more or {})}

    def check(value: Any) -> str | None:
        if type(value) is not dict:
            return " is not an object"
        for key, each in value.items():
            if key not in possible:
                return f".{_said(key)} is not a field of a certificate"
            problem = possible[key](each)
            if problem is not None:
                return f".{key}{problem}"
        for key in required:
            if key not in value:
                return f".{key} is missing"
        return None

    return check


def each_of(item: Field, distinct: Field | None = None) -> Field:
    """Make a check for a list of these; ``distinct`` looks at the list as a whole afterwards."""

    def check(value: Any) -> str | None:
        if type(value) is not list:
            return " is not a list"
        for position, each in enumerate(value):
            problem = item(each)
            if problem is not None:
                return f"[{position}]{problem}"
        return None if distinct is None else distinct(value)

    return check


def mapping(known: frozenset[str], item: Field) -> Field:
    """Make a check for an object from names of the language to these."""

    def check(value: Any) -> str | None:
        if type(value) is not dict:
            return " is not an object"
        for key, each in value.items():
            if key not in known:
                return f" names {_said(key)}, which is not in the language"
            problem = item(each)
            if problem is not None:
                return f".{_said(key)}{problem}"
        return None

    return check


def names(known: frozenset[str]) -> Field:
    """Make a check for a list of distinct names of the language."""

    def check(value: Any) -> str | None:
        problem = texts(value)
        if problem is None and not known.issuperset(value):
            stranger = next(each for each in value if each not in known)
            problem = f" names {_said(stranger)}, which is not in the language"
        return problem

    return check


def name(known: frozenset[str]) -> Field:
    """Make a check for one name of the language."""

    def check(value: Any) -> str | None:
        sound = type(value) is str and value in known
        return None if sound else " is not a name in the language"

    return check


def some(item: Field) -> Field:
    """Make a check for a list that is not empty."""
    return lambda value: " has an empty set" if value == [] else item(value)


def optional(item: Field) -> Field:
    """Make a check for null, or this."""
    return lambda value: None if value is None else item(value)


def either(one: Field, other: Field) -> Field:
    """Make a check for one or the other."""
    return lambda value: None if one(value) is None else other(value)


def one_of(*values: str) -> Field:
    """Make a check for one of these words."""

    def check(value: Any) -> str | None:
        sound = type(value) is str and value in values
        return None if sound else f" is none of {', '.join(values)}"

    return check


def number(least: int = 0) -> Field:
    """Make a check for a whole number from here on."""

    def check(value: Any) -> str | None:
        sound = type(value) is int and least <= value <= MANY
        return None if sound else f" is not a whole number from {least} to {MANY}"

    return check


def anything(_value: Any) -> str | None:
    """Accept anything: it is looked at elsewhere."""
    return None


def an_object(value: Any) -> str | None:
    """Accept an object, whatever is in it."""
    return None if type(value) is dict else " is not an object"


def boolean(value: Any) -> str | None:
    """Accept true and false."""
    return None if type(value) is bool else " is neither true nor false"


def finite(value: Any) -> str | None:
    """Accept a number that is one, and not below zero."""
    sound = type(value) in (int, float) and 0 <= value <= MANY
    return None if sound else f" is no number from 0 to {MANY}"


def text(value: Any) -> str | None:
    """Accept a text."""
    return None if type(value) is str else " is not text"


def texts(value: Any) -> str | None:
    """Accept a list of distinct texts."""
    if type(value) is not list or not set(map(type, value)) <= {str}:
        return " is not a list of texts"
    return " names something twice" if len(set(value)) < len(value) else None


def _unseen(value: Any) -> str | None:
    gap = fields(
        {
            "why": text,
            "service": text,
            "at": text,
            "point": text,
            "calls": number(1),
            "arrivals": number(1),
            "sure": boolean,
        }
    )
    figure = {"bound": optional(finite), "at_most": finite, "calls": number()}
    problem = fields({**figure, "gaps": each_of(gap)})(value)
    if problem is None and any(
        each["calls"] > each["arrivals"] or each["calls"] > value["at_most"] * each["arrivals"]
        for each in value["gaps"]
    ):
        return ".gaps are wider than it says"
    return problem


def _steps(value: Any) -> str | None:
    sound = type(value) is list and set(map(type, value)) <= {int, str, list}
    return None if sound else " is not a list of steps"


def _numbers(value: Any) -> str | None:
    sound = type(value) is list and set(map(type, value)) <= {int}
    return None if sound else " is not a list of whole numbers"


def _sets_are_distinct(value: list[list[str]]) -> str | None:
    return " names a set twice" if len(set(map(frozenset, value))) < len(value) else None


def _numbered(value: list[dict[str, Any]]) -> str | None:
    sound = [run["number"] for run in value] == list(range(1, len(value) + 1))
    return None if sound else " is not numbered from 1 on"


def _said(name: str) -> str:
    return repr(name if len(name) <= 200 else name[:200] + "…")
