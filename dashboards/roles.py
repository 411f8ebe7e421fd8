"""What part each point plays in a request class, as far as the evidence goes.

- *critical*: its failure by itself hurts;
- *fallback*: called only when something else has failed;
- *optional*: its failure by itself is proved to be survived;
- *untested*: nobody knows yet.

A point whose own failure is critical is called that, fallback or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from ldfi.experiments.domain.campaign.knowledge import Knowledge

Role = Literal["critical", "fallback", "optional", "untested"]

ROLES: Final[Mapping[Role, str]] = {
    "critical": "its failure alone hurts",
    "optional": "its failure alone is survived",
    "fallback": "called only when something else has failed",
    "untested": "nobody knows yet what its failure does",
}
"""The roles, the gravest first, and what each means."""


SAID: Final[Mapping[str, str]] = {
    "critical": "hurts alone",
    "optional": "survived alone",
    "fallback": "stands in",
    "untested": "never tried",
}
"""How a role is said on pages; the roles themselves are for programs."""


def roles_of(knowledge: Knowledge) -> dict[str, Role]:
    """Give every point that good requests of the class were ever seen to reach its role."""
    usual = knowledge.traffic.usually_called()
    return {point: _role(point, knowledge, usual) for point in sorted(knowledge.points)}


def _role(point: str, knowledge: Knowledge, usual: frozenset[str]) -> Role:
    judgement = knowledge.judge([point])
    if judgement == "failing":
        return "critical"
    if point not in usual:
        return "fallback"
    return "optional" if judgement == "safe" else "untested"
