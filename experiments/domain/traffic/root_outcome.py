"""The last resort among the sources of outcomes: the status of a request's root span.

It says what the service believes, not what the user saw. An answer of 200 may hold an error, or an
empty page; then a fault that hurts looks tolerated. Prefer device metrics.
"""

from __future__ import annotations

from ldfi.experiments.domain.traffic.observation import Outcome
from ldfi.lineage.lineage import Lineage


def root_outcome(lineage: Lineage) -> Outcome:
    """Read the outcome that the root span tells of: bad when it failed.

    A trace does not say which device it came from, so each request counts as a device of its own:
    one that asks a hundred times counts a hundred times, and the tests' samples are less
    independent than they assume.
    """
    return Outcome(
        trace_id=lineage.trace_id,
        device=lineage.trace_id,
        member="",
        success=not lineage.root_error,
        error_code="root-span" if lineage.root_error else None,
        duration=lineage.duration,
    )
