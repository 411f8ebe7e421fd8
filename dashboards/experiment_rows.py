"""Experiments as people say them: what was tried on what, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal

from sqlalchemy import select
from sqlalchemy.orm import Session

from ldfi.analysis.phrases import said_shortly
from ldfi.dashboards.words import listed
from ldfi.dashboards.worst import CalleesOf
from ldfi.experiments.api.views import ExperimentView
from ldfi.experiments.store.experiments import counts_of
from ldfi.experiments.store.schema import ExperimentRow

MOST: Final = 1_000
"""Experiments of one run that are looked at, the newest: a page has to end."""

Kind = Literal["harmful", "tolerated", "none", "running"]
KINDS: Final[dict[Kind, str]] = {
    "harmful": "hurt somebody",
    "tolerated": "survived",
    "none": "no answer",
    "running": "running",
}
"""What a mark says, and in which words."""


CAME: Final[Mapping[str, str]] = {
    "harmful": KINDS["harmful"],
    "tolerated": KINDS["tolerated"],
    "inconclusive": KINDS["none"],
    "aborted": "called off",
    "proposed": "waits",
    "waiting": "waits",
    "armed": "begins",
    "observing": "is running",
    "settling": "is being counted",
}
"""A verdict, or a state where there is none yet, for people."""

WHY: Final[Mapping[str, str]] = {
    "explore": "",
    "confirm": "tried once more, to be sure",
    "verify": "known before, tried again",
    "repeat": "tried once more, to be sure",
    "recheck": "believed to be harmless, tried all the same",
}
"""For what it was tried; nothing is said of what is tried to find out."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Devices of one arm that counted, and those of them that failed."""

    failures: int
    devices: int


@dataclass(frozen=True, slots=True)
class Tried:
    """One experiment. ``said``: what failed on purpose. ``came``: its verdict, else its state.
    ``at``: when it ended or, while it has not, began. ``open_before``: see the record."""

    id: str
    request_class: str
    said: str
    exact: tuple[str, ...]
    purpose: str
    came: str
    reason: str
    treated: Counted | None
    control: Counted | None
    charged: int
    created_at: float
    at: float
    open_before: int | None = None

    @property
    def words(self) -> str:
        """What came of it, in words."""
        return CAME.get(self.came, self.came)

    @property
    def why(self) -> str:
        """For what it was tried, in words."""
        return WHY.get(self.purpose, self.purpose)


def said_ended(ended: Mapping[str, int]) -> str:
    """Say what came of all experiments there ever were. ``ended``: how many, by verdict."""
    total = sum(ended.values())
    if not total:
        return "No experiment has ended yet"
    parts = [
        f"{ended[verdict]:,} {words}"
        for verdict, words in (
            ("harmful", "hurt somebody"),
            ("tolerated", "survived"),
            ("inconclusive", "without an answer"),
            ("", "called off"),
        )
        if ended.get(verdict)
    ]
    one = "experiment has" if total == 1 else "experiments have"
    return f"{total:,} {one} ended: {listed(parts)}"


def tried_of(views: Iterable[ExperimentView], callees_of: CalleesOf) -> list[Tried]:
    """Say what these are."""
    said = _saying(callees_of)
    return [_tried(each, each.counts, said) for each in views]


def tried_in(
    session: Session, campaign_id: str, run: int, callees_of: CalleesOf, live: Mapping[str, Any]
) -> list[Tried]:
    """List the experiments of a run, newest first, without what only their own pages show."""
    row = ExperimentRow
    arms = [
        row.comparison[arm][field].as_integer()
        for arm in ("treatment", "control")
        for field in ("failures", "devices")
    ]
    columns = (
        *(row.id, row.request_class, row.hypothesis, row.purpose, row.state, row.verdict),
        *(row.reason, row.members_charged, row.created_at, row.armed_at, row.ended_at),
        row.open_before,
    )
    query = select(*columns, *arms).where(row.campaign_id == campaign_id, row.run == run)
    newest = query.order_by(row.created_at.desc(), row.id.desc()).limit(MOST)
    said = _saying(callees_of)
    return [
        _tried(each, _counts(*each[-4:]), said, live.get(each.id))
        for each in session.execute(newest)
    ]


Saying = Callable[[str, tuple[str, ...]], str]


def _saying(callees_of: CalleesOf) -> Saying:
    """Say what failed in a class, once for each: the same is tried again and again."""
    return cache(lambda name, faults: said_shortly(faults, callees_of(name)))


def _counts(hurt: Any, treated: Any, failed: Any, control: Any) -> dict[str, Any]:
    """Put figures as they are on record as whoever is still running has them; None: none yet."""
    if treated is None or control is None:
        return {}
    return {
        "treatment": {"failures": hurt, "devices": treated},
        "control": {"failures": failed, "devices": control},
    }


def _tried(each: Any, counts: Mapping[str, Any], said: Saying, live: Any = None) -> Tried:
    """``each``: a view, or columns of a record; ``live``: the experiment itself, if not over."""
    state, reason = each.state, each.reason
    if live is not None:
        state, reason, counts = live.state, live.reason, counts_of(live)
    arms = {name: Counted(counts[name]["failures"], counts[name]["devices"]) for name in counts
            if name in {"treatment", "control"}}  # fmt: skip
    return Tried(
        id=each.id,
        request_class=each.request_class,
        said=said(each.request_class, tuple(each.hypothesis)),
        exact=tuple(each.hypothesis),
        purpose=each.purpose,
        came=each.verdict or state,
        reason="" if reason == "evidence" else reason,
        treated=arms.get("treatment"),
        control=arms.get("control"),
        charged=each.members_charged,
        created_at=each.created_at,
        at=each.ended_at or each.armed_at or each.created_at,
        open_before=getattr(each, "open_before", None),
    )
