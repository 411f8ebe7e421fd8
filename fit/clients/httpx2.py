"""httpx2, and anything else that sends through httpcore2: sync and async.

They are forks of httpx and httpcore, and fail as those do (:mod:`ldfi.fit.clients.httpx`).
"""

from __future__ import annotations

from importlib import import_module

from ldfi.fit.clients.httpx import put_points


def patch() -> None:
    """Make httpcore2's pools injection points."""
    put_points(import_module("httpcore2"))
