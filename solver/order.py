"""A total order on faults that no hash seed can change.

Faults are any hashables, so they may not compare with each other; every choice the solver makes
goes through this order, and the same seed gives the same exploration in every process.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeAlias

Fault: TypeAlias = Hashable
Faults: TypeAlias = frozenset[Fault]


def stable_key(fault: Fault) -> tuple[str, str]:
    """Make a sort key of the fault's type and how it reads; sets are read in sorted order."""
    if isinstance(fault, frozenset):
        return str(type(fault)), repr(sorted(stable_key(member) for member in fault))
    return str(type(fault)), repr(fault)


def ordered(faults: Iterable[Fault]) -> list[Fault]:
    """Put the faults in stable order."""
    return sorted(faults, key=stable_key)


def set_key(faults: Iterable[Fault]) -> tuple[int, list[tuple[str, str]]]:
    """Make a sort key for sets of faults: smaller sets first, then by their members."""
    keys = sorted(stable_key(fault) for fault in faults)
    return len(keys), keys
