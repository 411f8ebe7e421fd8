"""What faults are called on paper: a string is its own name, anything else its ``repr``."""

from __future__ import annotations

from collections.abc import Iterable

from ldfi.solver.errors import InvalidRecord
from ldfi.solver.order import Fault, Faults


def name_of(fault: Fault) -> str:
    """Name a fault."""
    return fault if isinstance(fault, str) else repr(fault)


def names_of(faults: Iterable[Fault]) -> list[str]:
    """Name faults, in order."""
    return sorted(name_of(each) for each in faults)


def distinct(names: list[Fault]) -> None:
    """Raise InvalidRecord if two faults have the same name."""
    seen: dict[str, Fault] = {}
    for fault in names:
        other = seen.setdefault(name_of(fault), fault)
        if other is not fault:
            raise InvalidRecord(f"two faults are both written {name_of(fault)!r}; name them apart")


def named(sets: Iterable[Faults]) -> list[list[str]]:
    """Name sets of faults, each sorted, smaller ones first."""
    return sorted((names_of(each) for each in sets), key=lambda each: (len(each), each))
