"""Settings declared once: a dataclass whose fields say all that anybody needs to know of them.

    members: Annotated[int, About("Devices that one experiment may expose", ge=1)] = 100

The check of the domain, the documents of the API, the options of the command line and the fields of
forms are all made from what is read here. It needs the standard library only: ``--help`` waits
for it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, fields
from types import NoneType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

_LIMITS: Final[dict[str, tuple[str, Callable[[Any, Any], bool]]]] = {
    "ge": ("at least", operator.ge),
    "gt": ("above", operator.gt),
    "le": ("at most", operator.le),
    "lt": ("below", operator.lt),
}


@dataclass(frozen=True, slots=True)
class About:
    """What stands beside a setting's type and default. Sentences have no full stop.

    ``meaning``: for the API and the command line. ``label`` and ``hint``: for forms; without a
    label it is the meaning. ``unit``: where it is not clear from the meaning. ``none``: what
    holds where the value is None. ``ge``, ``gt``, ``le``, ``lt``: at least, above, at most, below.
    ``reads``: raises ValueError for a word that it may not be, where there are too many to list;
    ``choices`` are then those that a form offers, and one at least has to be chosen.
    """

    meaning: str
    label: str = ""
    hint: str = ""
    unit: str = ""
    none: str = ""
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    choices: tuple[str, ...] = ()
    reads: Callable[[str], object] | None = None

    @property
    def described(self) -> str:
        """Return meaning, unit and what None means, as a sentence."""
        unit = f", in {self.unit}" if self.unit else ""
        return f"{self.meaning}{unit}{f'; null: {self.none}' if self.none else ''}."

    @property
    def limits(self) -> dict[str, float]:
        """Return those of ``ge``, ``gt``, ``le`` and ``lt`` that there are."""
        given = {name: getattr(self, name) for name in _LIMITS}
        return {name: limit for name, limit in given.items() if limit is not None}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its name, its type as it was declared, its default, and what is said of it."""

    name: str
    type: Any
    default: Any
    about: About

    @property
    def optional(self) -> bool:
        """Return whether None is a value."""
        return NoneType in get_args(self.type)

    @property
    def many(self) -> bool:
        """Return whether the value is several values."""
        return get_origin(self.type) is tuple

    @property
    def one(self) -> Any:
        """Return the type of a value that is not None, or of one of many."""
        inner = [each for each in get_args(self.type) if each not in {NoneType, ...}]
        return inner[0] if self.optional or self.many else self.type

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the words that are allowed, or offered; none where it is not a choice."""
        return get_args(self.one) if get_origin(self.one) is Literal else self.about.choices

    def check(self, value: Any) -> None:
        """Raise ValueError, with the value and what it may be, for one that it may not be."""
        if value is None and self.optional:
            return
        given = value if self.many else (value,)
        if self.about.reads is not None and (given or not self.choices):
            self._read(given, self.about.reads)
        elif self.choices and (not given or not set(given) <= set(self.choices)):
            raise ValueError(f"{self.name} is {value!r}; choose of {', '.join(self.choices)}")
        limits = self.about.limits
        if not all(_LIMITS[name][1](value, limit) for name, limit in limits.items()):
            allowed = " and ".join(f"{_LIMITS[name][0]} {limit}" for name, limit in limits.items())
            raise ValueError(f"{self.name} is {value}; it must be {allowed}")

    def _read(self, given: tuple[str, ...], reads: Callable[[str], object]) -> None:
        for each in given:
            try:
                reads(each)
            except ValueError as error:
                raise ValueError(f"{self.name} is {given!r}; {error}") from None
        if len(set(given)) < len(given):
            raise ValueError(f"{self.name} is {given!r}; one of them stands there twice")


def settings_of(declaration: type) -> dict[str, Setting]:
    """Read a dataclass whose fields are ``Annotated[..., About(...)]``, each with a default."""
    hints = get_type_hints(declaration, include_extras=True)
    return {
        each.name: Setting(
            each.name, hints[each.name].__origin__, each.default, hints[each.name].__metadata__[0]
        )
        for each in fields(declaration)
    }
