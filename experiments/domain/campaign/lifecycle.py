"""What becomes of a finding, over all campaigns.

    suspected ──▶ open ──▶ acknowledged          acknowledged: by a person
        │           │           │
        ▼           └─────┬─────┘
     refuted              ▼         survived by itself
        │               fixed ◀────────┐
        ▼                 │            │
     suspected            ▼ hurts again│
                      regressed ───────┘   may be acknowledged as well

    superseded: whatever hurts, once a part of it was found to hurt by itself
    killed: whatever seems to have killed a process, until a person has it tried again and it is
        survived (fixed) or hurts without that (open)

An exploration knows one campaign only. It says ``suspected``, ``open``, ``refuted``, ``fixed`` or
``superseded`` (:mod:`ldfi.experiments.domain.campaign.exploration`); here that is combined with
what was known before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:  # whoever only orders findings needs no solver
    from ldfi.experiments.domain.campaign.exploration import FindingNews

FindingState = Literal[
    "suspected", "open", "acknowledged", "fixed", "regressed", "refuted", "superseded", "killed"
]

HURTING: Final[frozenset[FindingState]] = frozenset({"open", "acknowledged", "regressed"})
"""States of a finding that hurts, for sure, as far as anyone knows."""

SERIOUS: Final[frozenset[FindingState]] = HURTING | {"killed"}
"""The same, and what seems to kill a process, which nobody tries again to make sure."""

_HARM: Final[Mapping[FindingState, int]] = {
    "killed": 0,
    **dict.fromkeys(HURTING, 1),
    "suspected": 2,
}
"""How states rank by harm; what is over comes after all of these."""

CONFIRMED: Final[frozenset[FindingState]] = HURTING | {"fixed"}
"""States of a finding that has hurt in an experiment of its own at some time."""


def severity(
    state: FindingState, failures: int, share: float | None, found_at: float, identity: str
) -> tuple[int, int, float, float, str]:
    """Return by what findings are ordered, the worst first, on every face.

    What kills processes is lost to everybody; then comes what hurts, what may hurt, what is over.
    Among these, fewer ``failures`` at once, then the larger ``share`` of all requests (None:
    unknown), then what was found earlier.
    """
    return (_HARM.get(state, len(_HARM)), failures, -(share or 0.0), found_at, identity)


def next_state(was: FindingState | None, told: FindingNews) -> FindingState:
    """Return the next state of a finding after this news; None: it is new.

    Only what was confirmed can be fixed or regress; whoever acknowledged a finding need not do so
    again while it hurts; and a mere suspicion takes nothing away from what is known better.
    """
    if told == "killed":
        return "killed"
    if was == "killed":
        return "open" if told == "open" else "fixed" if told in {"fixed", "refuted"} else was
    confirmed = was in CONFIRMED
    if told == "superseded":
        return was if was in {"fixed", "refuted"} else "superseded"
    if told == "suspected":
        return was if was is not None and confirmed else "suspected"
    if told == "open":
        if was is None or not confirmed:
            return "open"
        return "regressed" if was == "fixed" else was
    return "fixed" if confirmed else "refuted"
