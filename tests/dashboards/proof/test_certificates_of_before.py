"""Campaigns that are over keep the certificates they had, in whatever format that was."""

from __future__ import annotations

from typing import Any

from ldfi.dashboards.proof_story import stand_of
from ldfi.solver import Explorer

BEFORE: dict[str, Any] = {
    "format": "ldfi-certificate/1",
    "bounds": {"max_size": 2, "max_union": 10, "protected": [], "exclusions": [], "down": []},
    "language": {"faults": ["error@a", "error@b"], "domains": {}, "implications": {}},
    "deterministic": False,
    "monotone": True,
    "evidence": {
        "good": [
            {"origin": "observed", "failed": [], "support": ["error@a"], "count": 7, "traces": []},
            {"origin": "injected", "failed": ["error@b"], "support": ["error@a"]}
            | {"count": 1, "traces": []},
        ],
        "bad": [{"fired": ["error@a"], "count": 1, "traces": []}],
    },
    "findings": [["error@a"]],
    "minimal_failing_sets": [["error@a"]],
    "larger_findings": [],
    "open": [],
    "open_complete": True,
    "inconclusive": [],
    "violations": [],
    "rechecks": {"tried": 1, "violated": 0},
    "experiments": 2,
    "lower_bound": {"failing": 1, "packing": [], "total": 1, "ratio": 1.0},
}


def test_a_certificate_of_the_format_before_is_shown_as_one_of_today() -> None:
    # Given what was certified before, and the same learned today
    explorer = Explorer()
    for _ in range(7):
        explorer.observe({"error@a"})
    explorer.record(injected={"error@b"}, succeeded=True, support={"error@a"})
    explorer.record(injected={"error@a"}, succeeded=False)
    # Then the pages say the same of both
    before, today = stand_of(BEFORE), stand_of(explorer.certificate().data)
    assert before.complete
    assert (before.natural, before.injected, before.max_size) == (1, 1, 2)
    assert before == today
