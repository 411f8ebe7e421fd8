"""How people call kinds of request, and what they say when one is lost: a file in TOML.

A table for each request class, by its name; both keys may be left out::

    ["GET /play/*"]
    name = "Play"
    lost = "nobody can press play"

Sentences then say *When license does not answer, nobody can press play* instead of *GET /play/* is
lost when license does not answer*. What is not in the file goes by its own name.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

LONGEST: Final = 200
"""Characters of a name or a sentence."""

KEYS: Final = ("name", "lost")


@dataclass(frozen=True, slots=True)
class Called:
    """``names`` and ``losses``: by request class."""

    names: Mapping[str, str] = field(default_factory=dict)
    losses: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Called:
        """Read the file. Raises ValueError with the place and what is wrong."""
        found = tomllib.loads(text)
        for request_class, table in found.items():
            _check(request_class, table)
        names, losses = (
            {name: table[key] for name, table in found.items() if key in table} for key in KEYS
        )
        return cls(names, losses)

    def name(self, request_class: str) -> str:
        """Return how people call it."""
        return self.names.get(request_class, request_class)

    def lost(self, request_class: str) -> str:
        """Return what users cannot do without it: ``Play is lost``, unless a better sentence was
        given."""
        return self.losses.get(request_class) or f"{self.name(request_class)} is lost"


BY_THEIR_NAMES: Final = Called()
"""Where there is no file."""


def _check(request_class: str, table: Any) -> None:
    if not isinstance(table, dict):
        raise ValueError(  # noqa: TRY004 - of a file, not of an argument
            f'{request_class!r}: a table is needed, ["{request_class}"]'
        )
    for key, value in table.items():
        where = f"[{request_class!r}] {key}"
        if key not in KEYS:
            raise ValueError(f"{where}: only {' and '.join(KEYS)} are known")
        if not isinstance(value, str) or not 0 < len(value) <= LONGEST or not value.isprintable():
            raise ValueError(f"{where}: {value!r} is not a line of 1 to {LONGEST} characters")
