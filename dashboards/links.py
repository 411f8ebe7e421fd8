"""Where things have their page."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

_OURS: Final = re.compile(r"/(?![/\\])[^\x00-\x20\x7f\\]*")


def to_campaign(campaign_id: str) -> str:
    """The page of a campaign."""
    return f"/campaigns/{quote(campaign_id, safe='')}"


def to_class(name: str) -> str:
    """The page of a request class; its name may hold anything."""
    return f"/classes/{quote(name, safe='')}"


def to_experiment(experiment_id: str) -> str:
    """The page of an experiment."""
    return f"/experiments/{quote(experiment_id, safe='')}"


def to_finding(finding_id: str) -> str:
    """The page of a finding."""
    return f"/findings/{quote(finding_id, safe='')}"


def to_subject(what: str, subject: str) -> str | None:
    """The page of what an audit row is about; None where it has none."""
    kind = what.partition(" ")[0]
    makers = {
        "campaign": to_campaign,
        "experiment": to_experiment,
        "finding": to_finding,
    }
    if not subject or kind not in makers:
        return None
    return makers[kind](subject)


def ours(path: str) -> str:
    """``path`` where it is one of this site, else the overview: nobody is sent elsewhere."""
    return path if _OURS.fullmatch(path) else "/"
