"""What nature has shown at each point: kinds of failure that can be injected there, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ldfi.fit.protocol.kinds import KINDS, FaultKind, kind_of
from ldfi.fit.protocol.native_kinds import native


def shown(failures: Iterable[frozenset[str]]) -> dict[str, tuple[FaultKind, ...]]:
    """Say by point how calls failed there by themselves (``kind@point``), the commonest first."""
    return shown_often((each, 1) for each in failures)


def shown_often(
    failures: Iterable[tuple[frozenset[str], int]],
) -> dict[str, tuple[FaultKind, ...]]:
    """Say the same where each set of failures is given with its number of requests."""
    seen: dict[str, Counter[FaultKind]] = {}
    for failed, requests in failures:
        for fault in failed:
            kind, _, point = fault.partition("@")
            if kind not in KINDS and _is_kind(kind) and native(kind, point):
                seen.setdefault(point, Counter())[kind] += requests
    return {
        point: tuple(sorted(counts, key=lambda kind: (-counts[kind], kind)))
        for point, counts in seen.items()
    }


def _is_kind(text: str) -> bool:
    try:
        kind_of(text)
    except ValueError:
        return False
    return True
