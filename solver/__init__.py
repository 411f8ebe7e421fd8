"""``solver``: which combinations of faults could be harmful, and which to try next.

Pure: no I/O, no clock, no knowledge of traces. A fault is any hashable, a support a set of them.

    explorer = Explorer(max_size=2)
    explorer.observe({"login", "catalogue", "ratings"})
    while (hypothesis := explorer.propose()) is not None:
        explorer.record(injected=hypothesis, succeeded=..., support=...)
    explorer.findings, explorer.certificate()
"""

from __future__ import annotations

from ldfi.solver.certificate import Certificate
from ldfi.solver.certify import Statement
from ldfi.solver.entries import Doubt
from ldfi.solver.equation import Violation
from ldfi.solver.errors import InvalidRecord, OutOfTime, SolverError
from ldfi.solver.explorer import Explorer, Judgement
from ldfi.solver.order import Fault, Faults

__all__ = [
    "Certificate",
    "Doubt",
    "Explorer",
    "Fault",
    "Faults",
    "InvalidRecord",
    "Judgement",
    "OutOfTime",
    "SolverError",
    "Statement",
    "Violation",
]
