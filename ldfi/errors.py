"""The root of every exception of ldfi.

It stands above the rooms, so that whoever catches it, or adds a branch, loads no room for that. The
tree is drawn in :mod:`ldfi.fit.errors`.
"""

from __future__ import annotations


class LdfiError(Exception):
    """The root of every exception that ldfi raises on purpose."""
