"""What a comparison comes to in one word: for a pipeline that asks whether to go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ldfi.scenarios.replays.comparing import EVERYTHING, ClassDifference

RunVerdict = Literal["same", "worse", "cannot tell"]


def verdict_of(classes: Sequence[ClassDifference]) -> RunVerdict:
    """Judge all classes: worse where any metric of any of them is; the same where nothing that
    matters is open for all requests together, or for each class where they cannot be united. What
    became better is the same here: nothing stands in the way."""
    if any(metric.verdict == "worse" for each in classes for metric in each.metrics):
        return "worse"
    united = [each for each in classes if each.name == EVERYTHING] or classes
    open_ones = [m for each in united for m in each.weighty if m.verdict == "cannot tell"]
    return "cannot tell" if open_ones or not united else "same"
