"""How far a campaign is, in a line."""

from __future__ import annotations

from typing import Any

import pytest

from ldfi.cli.estimate import so_far


@pytest.mark.parametrize(
    ("experiments", "open_", "says"),
    [
        (0, 4, "0 experiments in 2 min, 0 of 1 class done, 1 finding, 4 hypotheses left to try; "
         "how long it takes is unknown yet"),
        (12, 4, "12 experiments in 2 min, 0 of 1 class done, 1 finding, 4 hypotheses left to try; "
         "about 40 s more at this rate"),
        (12, 0, "12 experiments in 2 min, 0 of 1 class done, 1 finding, 0 hypotheses left to try; "
         "nothing left to try for now"),
    ],
)  # fmt: skip
def test_a_line_says_what_is_done_and_how_long_the_rest_may_take(
    experiments: int, open_: int, says: str
) -> None:
    one: dict[str, Any] = {"finished": False, "findings": ["f"], "open": open_}
    campaign = {"experiments": experiments, "run_started_at": 1000.0, "classes": [one]}
    assert so_far(campaign, 1120.0) == says
