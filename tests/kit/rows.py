"""Rows of the store: what a test does not give is as it mostly is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ldfi.experiments.store.schema import CampaignRow, ExperimentRow, FindingRow


def campaign_row(id_: str = "c", **given: Any) -> CampaignRow:
    """Return a campaign that is over."""
    usual: dict[str, Any] = {"state": "finished", "definition": {}, "created_at": 1.0}
    return CampaignRow(id=id_, **usual | given)


def experiment_row(
    id_: str = "e", hypothesis: Sequence[str] = ("error@a",), **given: Any
) -> ExperimentRow:
    """Return an experiment of the campaign ``c`` that was decided, on this hypothesis."""
    usual: dict[str, Any] = {"campaign_id": "c", "request_class": "GET /", "purpose": "explore"}
    usual |= {"state": "decided", "faults": [*hypothesis], "created_at": 1.0}
    return ExperimentRow(id=id_, hypothesis=[*hypothesis], **usual | given)


def finding_row(id_: str = "f", faults: Sequence[str] = ("error@a",), **given: Any) -> FindingRow:
    """Return a finding that is open, of the experiment ``e`` of the campaign ``c``."""
    usual: dict[str, Any] = {"request_class": "GET /", "state": "open", "found_at": 1.0}
    usual |= {"campaign_id": "c", "experiment_id": "e"}
    return FindingRow(id=id_, faults=[*faults], **usual | given)
