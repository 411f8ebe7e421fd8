"""The exceptions of ``lineage``, a branch of the tree in :mod:`ldfi.fit.protocol.errors`.

LdfiError
└── LineageError
    └── UnreadableTraces   the input is not in a trace format that we read
"""

from __future__ import annotations

from ldfi.errors import LdfiError


class LineageError(LdfiError):
    """Raised by the part that turns traces into evidence."""


class UnreadableTraces(LineageError):  # noqa: N818
    """Raised for input that is no trace data. Data: ``reason``, in words for a person."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
