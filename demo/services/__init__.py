"""The services of the demo: each a module with ``routes``, each served by a process of its own."""

from __future__ import annotations

from typing import Final

NAMES: Final = (
    "api",
    "bookmarks",
    "history",
    "layout",
    "license",
    "playlist",
    "playlist-fallback",
    "profiles",
    "promos",
    "ratings",
    "recommend",
    "recordsdb",
    "search",
    "spelling",
    "titles",
    "trending",
)

GATEWAY: Final = "api"
DATABASES: Final = frozenset({"recordsdb"})
"""Traced by nobody, as databases usually are: their callers' spans are all one sees of them."""
