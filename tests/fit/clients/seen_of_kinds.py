"""What the callers of each client see of each kind of fault, as ``kinds.json`` has it.

``test_kinds`` proves every entry, and the tests of the clients by themselves those of
``BY_THEMSELVES``.

``docs/generate.py`` makes the table of ``docs/injection-points.md`` of it, and refuses an entry
that no test is parametrized with (``proofs``). A kind that stands here for none of a client's calls
does nothing there.
"""

from __future__ import annotations

from typing import Final

from ldfi.fit.protocol.kinds import RECORDS
from tests.fit.clients.callers import CALLERS

SAME: Final = {
    "httpx, asyncio": "httpx",
    "httpx, in tests": "httpx",
    "httpx, asyncio, in tests": "httpx",
    "httpx2, asyncio": "httpx2",
    "redis-py, asyncio": "redis-py",
    "psycopg, asyncio": "psycopg",
    "psycopg2, DictCursor": "psycopg2",
}
"""Clients whose callers see the same as another's; messages may differ."""


def _all() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for word, record in RECORDS.items():
        for client, seen in record.get("clients", {}).get("python", {}).items():
            found.setdefault(client, {}).update(seen if isinstance(seen, dict) else {word: seen})
    return found


_EVERY: Final = _all()
SEEN: Final = {client: seen for client, seen in _EVERY.items() if client in CALLERS}
"""Client → kind → the exception that its caller gets, or the status of the answer."""

BY_THEMSELVES: Final = {c: seen for c, seen in _EVERY.items() if c not in CALLERS}
"""Client that has servers of its own → kind → the same; of one that answers, its answer."""
