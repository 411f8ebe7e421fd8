"""Where things have their page."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urlencode

MOST_DOWN: Final = 100
"""Names that an address may say are down at once."""

_OURS: Final = re.compile(r"/(?![/\\])[^\x00-\x20\x7f\\]*")


def to_campaign(campaign_id: str) -> str:
    """Link to the page of a campaign."""
    return f"/campaigns/{quote(campaign_id, safe='')}"


def to_class(name: str) -> str:
    """Link to the page of a request class; its name may hold anything."""
    return f"/classes/{quote(name, safe='')}"


def to_experiment(experiment_id: str) -> str:
    """Link to the page of an experiment."""
    return f"/experiments/{quote(experiment_id, safe='')}"


def to_finding(finding_id: str) -> str:
    """Link to the page of a finding."""
    return f"/findings/{quote(finding_id, safe='')}"


def to_certificate(campaign_id: str) -> str:
    """Link to the page of a campaign's certificates."""
    return f"/certificates/{quote(campaign_id, safe='')}"


def to_was_it_us(since: float, until: float, request_class: str | None = None) -> str:
    """Link to what was armed in a window of time: for anybody, wherever their clock is."""
    window = {"since": _stamp(since), "until": _stamp(until), "request_class": request_class}
    return f"/was-it-us?{urlencode({k: v for k, v in window.items() if v}, safe=':')}"


def to_trace(template: str, trace_id: str) -> str | None:
    """Link to where a trace can be looked at (``LDFI_TRACE_URL``); None where nobody has said."""
    return web(template.replace("{trace_id}", quote(trace_id, safe="")))


def web(url: str) -> str | None:
    """Keep ``url`` where it leads to a web page; None for anything else, a script above all."""
    return url if url.startswith(("https://", "http://")) else None


def to_subject(what: str, subject: str) -> str | None:
    """Link to the page of what an audit row is about; None where it has none."""
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
    """Keep ``path`` where it is one of this site, else the overview: nobody is sent elsewhere."""
    return path if _OURS.fullmatch(path) else "/"


def _stamp(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"
