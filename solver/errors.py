"""The exceptions of ``solver``: it imports nothing of ours, so it has a small tree of its own.

SolverError
├── InvalidRecord   what was recorded contradicts itself or the bounds
└── OutOfTime       the time limit passed before anything could be said
"""

from __future__ import annotations


class SolverError(Exception):
    """Raised by the solver."""


class InvalidRecord(SolverError, ValueError):  # noqa: N818
    """Raised for an argument that contradicts itself or the bounds. The message shows the value."""


class OutOfTime(SolverError):  # noqa: N818
    """Raised when the time limit passed before anything could be said; nothing is lost."""
