"""Which tests prove what callers see of each kind of fault, read from how they are parametrized.

Nothing is run for it, no server and no socket. ``docs/generate.py`` makes the table of
``docs/injection-points.md`` of what is proved and of nothing else.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Final

from tests.fit.clients.seen_of_kinds import BY_THEMSELVES, SAME, SEEN

TEST: Final = "test_what_a_caller_sees_is_what_it_sees_when_"
"""How the name of a proving test begins, which lets it really happen and injects it, and holds what
is seen against the table. It is parametrized with ``client`` and ``kind``."""

Seen = Mapping[str, Mapping[str, str]]


def proved() -> dict[tuple[str, str], str]:
    """Read which test module proves what a client's callers see of a kind."""
    found: dict[tuple[str, str], str] = {}
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        if TEST in path.read_text(encoding="utf-8"):
            module = importlib.import_module(f"tests.fit.clients.{path.stem}")
            found |= dict.fromkeys(_pairs(module), path.name)
    return found


def _pairs(module: ModuleType) -> Iterator[tuple[str, str]]:
    tests = [test for name, test in vars(module).items() if name.startswith(TEST)]
    marks = [mark for test in tests for mark in test.pytestmark if mark.name == "parametrize"]
    for names, values, *_ in (mark.args for mark in marks):
        if tuple(names) == ("client", "kind"):
            yield from values


def tables() -> tuple[Seen, Seen]:
    """Return both tables of what is seen. Raises ValueError for an entry that no test proves, and
    for a proof of what stands in neither."""
    entries = {
        (client, kind)
        for table in (SEEN, BY_THEMSELVES)
        for client in table
        for kind in table[client]
    }
    entries |= {(client, kind) for client, other in SAME.items() for kind in _of(other)}
    differ = entries ^ set(proved())
    if differ:
        raise ValueError(f"in the table or proved, and not both: {sorted(differ)}")
    return SEEN, BY_THEMSELVES


def _of(client: str) -> Mapping[str, str]:
    return SEEN.get(client) or BY_THEMSELVES[client]
