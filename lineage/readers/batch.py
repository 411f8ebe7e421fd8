"""What a reader hands over: spans, and how many it had to refuse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ldfi.lineage.span import Span


class Batch(NamedTuple):
    """The spans of one document or request. ``rejected``: spans without usable ids or times."""

    spans: Sequence[Span]
    rejected: int
