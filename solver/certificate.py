"""The certificate: nothing within the bounds is left untested, with the evidence for it.

It holds everything that :mod:`ldfi.checker.solving` needs to verify it without trusting the solver:
the runs themselves, the meaning of domains and implications, the bounds, and what stayed open.
Faults appear by name; a fault that is no string appears as its ``repr``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

FORMAT = "ldfi-certificate/2"


@dataclass(frozen=True)
class Certificate:
    """What an exploration knows at one moment, as one JSON document.

    ``data`` has these keys. ``axioms``, which nothing in it can prove: bounds (max_size, protected,
    exclusions, down, and where there is any what is presumed harmful, each with its ``of``, and
    ``no_injector``: those of the protected that nobody can bring about, with what would help), what
    is impossible, the language (faults, domains, implications, each with the run that showed it),
    deterministic, monotone, and how often the same has to be seen to be believed. ``evidence``: the
    runs in their order, numbered from 1: ``observed`` ones (failed, support, count, traces),
    experiments (besides injected, good, firm, recheck, caused) and cautions (failed, support,
    among). What follows: ``findings``, ``minimal_failing_sets``, ``larger_findings``, ``open``:
    lists of fault sets; ``open_complete``: whether all that is open is listed; ``inconclusive``:
    sets tried in vain, with attempts; ``violations`` of "more faults never help"; ``rechecks``;
    ``experiments``; ``lower_bound`` (failing, packing, total, ratio); ``doubt``, null where nothing
    is doubted (sets survived, and survived once; hypotheses that are open but for runs that are not
    firm; contradictions unsettled). ``derivation``: which run decides what
    (:mod:`ldfi.solver.derivation`). ``unseen``, where whoever collected the evidence says it: what
    cannot be seen of the requests (bound, null where nobody asks; at_most; calls; gaps).
    """

    data: dict[str, Any]

    @property
    def complete(self) -> bool:
        """Return whether no hypothesis within the bounds is open, and no more is unseen than
        allowed."""
        unseen = self.data.get("unseen") or {"bound": None}
        blind = unseen["bound"] is not None and unseen["at_most"] > unseen["bound"]
        return bool(self.data["open_complete"]) and not self.data["open"] and not blind

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
        if isinstance(data, dict) and data.get("format") == "ldfi-certificate/1":
            raise ValueError(f"this certificate is of an older format than {FORMAT!r}")
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError(f"this is not a certificate in the format {FORMAT!r}")
        return cls(data)
