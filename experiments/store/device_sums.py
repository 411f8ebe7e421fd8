"""Reads counts of devices from records: of one experiment, and as sums over many in SQL.

They hold for experiments that are over. While one runs only it can tell, and what an abandoned one
did nobody knows: of these all that is reserved is ``unknown``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, case, func
from sqlalchemy.orm import InstrumentedAttribute

from ldfi.experiments.domain.campaign.recording import GONE
from ldfi.experiments.domain.judging.counts import DeviceCounts
from ldfi.experiments.domain.judging.experiment import ACTIVE
from ldfi.experiments.store.schema import ExperimentRow

_Row = ExperimentRow
_ARMED: Final = _Row.armed_at.is_not(None)
_OVER: Final = and_(_ARMED, _Row.state.not_in(ACTIVE), _Row.reason != GONE)
_BESIDE: Final = _Row.comparison[("others", "hurt")].as_integer()
_REACHED: Final = func.coalesce(_Row.comparison["exposed"].as_integer(), 0)
_TREATED: Final = case((_Row.members_charged < _REACHED, _REACHED), else_=_Row.members_charged)
"""Edges say what they used a little later than devices report; budgets go by the edges."""


def _sum(
    of: ColumnElement[Any] | InstrumentedAttribute[int], where: ColumnElement[bool]
) -> ColumnElement[int]:
    return func.coalesce(func.sum(case((where, of), else_=0)), 0)


HURT: Final = _sum(_Row.members_hurt, _OVER)
SUMS: Final = (
    _sum(_Row.members_reserved, _ARMED),
    _sum(_TREATED, _OVER),
    _sum(_REACHED, _OVER),
    HURT + _sum(_Row.comparison[("control", "failures")].as_integer(), _OVER),
    HURT,
    _sum(_BESIDE, _OVER),
    _sum(_Row.members_reserved, and_(_ARMED, ~_OVER)),
)
"""The fields of :class:`DeviceCounts`, in their order."""

HURTING: Final = and_(_OVER, (_Row.members_hurt > 0) | (func.coalesce(_BESIDE, 0) > 0))
"""Whether devices are known to have been hurt under one."""

_FIGURES: Final = (
    *(("treatment", "devices"), ("treatment", "failures")),
    *(("control", "devices"), ("control", "failures")),
    *(("others", "hurt"), ("exposed",)),
)
FIGURES: Final = tuple(_Row.comparison[path].as_integer() for path in _FIGURES)
"""Columns to ask for where the whole ``comparison`` would be too much; see :func:`compared`."""


def compared(figures: Any) -> dict[str, Any]:
    """Return a ``comparison`` made of these ``FIGURES``; those that are missing are left out."""
    made: dict[str, Any] = {}
    for path, value in zip(_FIGURES, figures, strict=True):
        if value is not None:
            place = made if len(path) == 1 else made.setdefault(path[0], {})
            place[path[-1]] = value
    return made


def counts_on_record(row: Any, comparison: Mapping[str, Any]) -> DeviceCounts:
    """Count the devices of an experiment from its record, or from columns of it.
    ``comparison``: what was compared in it, or :func:`compared`."""
    if row.armed_at is None:
        return DeviceCounts()
    if row.state in ACTIVE or row.reason == GONE:
        return DeviceCounts(reserved=row.members_reserved, unknown=row.members_reserved)
    reached = comparison.get("exposed", 0)
    return DeviceCounts(
        reserved=row.members_reserved,
        treated=max(row.members_charged, reached),
        reached=reached,
        failed=row.members_hurt + (comparison.get("control") or {}).get("failures", 0),
        hurt=row.members_hurt,
        bystanders_hurt=(comparison.get("others") or {}).get("hurt", 0),
    )
