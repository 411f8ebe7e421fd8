"""The certificate: nothing within the bounds is left untested, with the evidence for it.

It holds everything that :mod:`ldfi.solver.check` needs to verify it without trusting the solver:
the runs themselves, the meaning of domains and implications, the bounds, and what stayed open.
Faults appear by name; a fault that is no string appears as its ``repr``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

FORMAT = "ldfi-certificate/1"


@dataclass(frozen=True)
class Certificate:
    """What an exploration knows at one moment, as one JSON document.

    ``data`` has these keys. ``bounds``: max_size, max_union, protected, exclusions, down.
    ``language``: faults, domains, implications. ``evidence``: good runs (origin, failed, support,
    count, traces) and bad ones (fired, count, traces). ``findings``, ``minimal_failing_sets``,
    ``larger_findings``, ``open``: lists of fault sets. ``open_complete``: whether all that is open
    is listed. ``inconclusive``: sets tried in vain, with attempts. ``violations`` of "more faults
    never help". ``rechecks``: how many sets that were inferred to be safe were tried nevertheless,
    and how many of them failed. ``experiments``, ``lower_bound`` (failing, packing, total, ratio).
    A campaign adds two: ``doubt`` (tries wanted; sets survived, and survived once; hypotheses that
    are open but for lessons tried once; contradictions unsettled), and, where it is not all of it,
    the part of the evidence that what is not open ``rests_on``.
    """

    data: dict[str, Any]

    @property
    def complete(self) -> bool:
        """Whether no hypothesis within the bounds is open."""
        return bool(self.data["open_complete"]) and not self.data["open"]

    @property
    def findings(self) -> tuple[tuple[str, ...], ...]:
        """The findings, sorted."""
        return tuple(tuple(each) for each in self.data["findings"])

    @property
    def ratio(self) -> float | None:
        """Experiments (re-checks aside) over the lower bound; None if the bound is zero."""
        ratio: float | None = self.data["lower_bound"]["ratio"]
        return ratio

    def to_json(self) -> str:
        """Write it as one JSON document, in a stable order."""
        return json.dumps(self.data, indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read what :meth:`to_json` wrote. Raises ValueError for anything else."""
        data = json.loads(text)
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError(f"this is no certificate in the format {FORMAT!r}")
        return cls(data)
