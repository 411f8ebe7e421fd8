"""What the page *Weaknesses* shows: findings as sentences, what they cost, whose they are, grouped
by what one repair would mend. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args
from urllib.parse import urlencode

from ldfi.analysis.repairs.request_names import BY_THEIR_NAMES, Called
from ldfi.dashboards.words import age
from ldfi.dashboards.worst_findings import STATES, Which, harm
from ldfi.experiments.api.repairs import Explained
from ldfi.experiments.domain.campaign.lifecycle import SERIOUS
from ldfi.experiments.queries.finding_summary import share_of
from ldfi.experiments.store.schema import FindingRow
from ldfi.fit.protocol.kinds import outlasted

NEEDS: Final = frozenset({"killed", "open", "regressed", "suspected"})
"""States in which a finding waits for somebody."""

NEW: Final = 7 * 86_400.0
"""Seconds for which an open finding is new."""

MOST: Final = 1_000
"""Findings that are looked at, the newest: nobody has more, and a page has to end."""

SHOWN: Final = 40
"""Rows of one page."""

Grouping = Literal["cause", "class", "owner", "nothing"]
GROUPINGS: Final[tuple[Grouping, ...]] = get_args(Grouping)
GROUPED: Final[Mapping[Grouping, str]] = {
    "cause": "cause",
    "class": "kind of request",
    "owner": "owner",
    "nothing": "nothing",
}

NOBODY: Final = "nobody"
TAKES: Final = {1: "one failure", 2: "two at once", 3: "three at once"}
SLOW: Final = "one slow answer"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the address asks for; every part may be left out."""

    state: Which | None = None
    request_class: str | None = None
    owner: str | None = None
    takes: str | None = None
    group: Grouping = "cause"
    start: int = 0

    def to(self, **other: str | int | None) -> str:
        """Link to the same with something else; the rows begin at the first again."""
        then = replace(self, **{"start": 0, **other})  # type: ignore[arg-type]
        asked = {
            "state": then.state,
            "request_class": then.request_class,
            "owner": then.owner,
            "takes": then.takes,
            "group": None if then.group == "cause" else then.group,
            "start": then.start or None,
        }
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        return f"/findings?{query}" if query else "/findings"


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of a filter. ``to``: where it is chosen, or given up if it is ``chosen``."""

    name: str
    count: int
    to: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Facet:
    """A filter with its values."""

    title: str
    choices: list[Choice]


@dataclass(frozen=True, slots=True)
class Row:
    """A weakness. ``mark``: the sign in front of it; ``tone``: of its state's chip. ``share``: of
    all requests; None where nobody asks for anything."""

    explained: Explained
    share: float | None
    mark: str
    takes: str
    age: str
    state: str
    tone: str

    @property
    def finding(self) -> FindingRow:
        """The finding itself."""
        return self.explained.row

    @property
    def owners(self) -> tuple[str, ...]:
        """Who owns what would have to be mended; ``nobody`` where nobody says."""
        return self.explained.advice.owners or (NOBODY,)


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that belong together. ``why``: what makes them one cause; empty for other groups."""

    name: str
    why: str
    rows: list[Row]


@dataclass(frozen=True, slots=True)
class Weaknesses:
    """``found``: of what was asked for, how many there are. ``all``: of everything that was looked
    at. ``more``: where the next rows are."""

    title: str
    wanted: Wanted
    states: list[Choice]
    groupings: list[Choice]
    facets: list[Facet]
    groups: list[Group]
    found: int
    all: int
    more: str


def matching(rows: Iterable[FindingRow], which: Which | None, now: float) -> list[FindingRow]:
    """Choose what is in a state; None: what needs somebody."""
    return [row for row in rows if _is(row, which, now)]


def weaknesses(
    every: Sequence[FindingRow],
    explained: Iterable[Explained],
    rates: Mapping[str, float],
    wanted: Wanted,
    now: float,
    called: Called = BY_THEIR_NAMES,
) -> Weaknesses:
    """Tell it. ``explained``: those in the state that is ``wanted``. ``rates``: requests by
    class."""
    rows = [_row(each, rates, now) for each in explained]
    rows.sort(key=lambda each: harm(each.finding, each.share))
    chosen = [row for row in rows if _fits(row, wanted)]
    end = wanted.start + SHOWN
    return Weaknesses(
        title=title(every, now),
        wanted=wanted,
        states=_states(every, wanted, now),
        groupings=[
            Choice(GROUPED[each], 0, wanted.to(group=each), each == wanted.group)
            for each in GROUPINGS
        ],
        facets=[
            _facet("What users were doing", "request_class", rows, wanted, _classes, called.name),
            _facet("Owner", "owner", rows, wanted, lambda row: row.owners),
            _facet("It takes", "takes", rows, wanted, lambda row: (row.takes,)),
        ],
        groups=_grouped(chosen[wanted.start : end], wanted.group, called),
        found=len(chosen),
        all=len(every),
        more=wanted.to(start=end) if len(chosen) > end else "",
    )


def _states(every: Sequence[FindingRow], wanted: Wanted, now: float) -> list[Choice]:
    counts = {which: len(matching(every, which, now)) for which in STATES}
    return [
        Choice(name, counts[which], wanted.to(state=which), which == wanted.state)
        for which, name in STATES.items()
    ]


def title(every: Sequence[FindingRow], now: float) -> str:
    """Say how many need somebody: the answer to what the page is asked."""
    if not every:
        return "No weakness has been found"
    needs, new = len(matching(every, None, now)), len(matching(every, "new", now))
    if not needs:
        return "No weakness needs anybody"
    said = "1 weakness needs somebody" if needs == 1 else f"{needs:,} weaknesses need somebody"
    more = "all of them new" if new == needs > 1 else f"{new:,} new"
    return f"{said}, {more} this week" if new else said


def _is(row: FindingRow, which: Which | None, now: float) -> bool:
    if which is None:
        return row.state in NEEDS
    if which == "new":
        return row.state == "open" and now - row.found_at < NEW
    if which == "hurting":
        return row.state in SERIOUS
    return which in {"all", row.state}


def _row(explained: Explained, rates: Mapping[str, float], now: float) -> Row:
    row = explained.row
    new = _is(row, "new", now)
    state = "new" if new else STATES.get(row.state, row.state).lower()  # type: ignore[call-overload]
    calm = {"fixed": "good", "suspected": "wait", "acknowledged": "wait"}.get(row.state, "plain")
    return Row(
        explained=explained,
        share=share_of(row.request_class, rates),
        mark=_mark(row),
        takes=_takes(row.faults),
        age=age(now - row.found_at),
        state=state,
        tone="bad" if new or row.state in {"regressed", "killed"} else calm,
    )


def _mark(row: FindingRow) -> str:
    if row.state in {"fixed", "refuted"}:
        return "well"
    if row.state == "suspected":
        return "unknown"
    return "alone" if len(row.faults) == 1 else "together"


def _takes(faults: Sequence[str]) -> str:
    if len(faults) == 1 and outlasted(faults[0].partition("@")[0]):
        return SLOW
    return TAKES.get(len(faults), f"{len(faults)} at once")


def _classes(row: Row) -> tuple[str, ...]:
    return (row.finding.request_class,)


def _fits(row: Row, wanted: Wanted) -> bool:
    return (
        wanted.request_class in {None, row.finding.request_class}
        and (wanted.owner is None or wanted.owner in row.owners)
        and wanted.takes in {None, row.takes}
    )


def _facet(
    title: str,
    field: str,
    rows: Iterable[Row],
    wanted: Wanted,
    values: Callable[[Row], tuple[str, ...]],
    named: Callable[[str], str] = str,
) -> Facet:
    """Count by value what the other filters let through. What is chosen is there with no row,
    too: it can be given up."""
    others = replace(wanted, **{field: None})  # type: ignore[arg-type]
    counts = Counter(value for row in rows if _fits(row, others) for value in values(row))
    chosen: str | None = getattr(wanted, field)
    if chosen is not None:
        counts[chosen] += 0
    choices = []
    for value, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        to = wanted.to(**{field: None if value == chosen else value})
        choices.append(Choice(named(value), count, to, value == chosen))
    return Facet(title, choices)


def _grouped(rows: Sequence[Row], by: Grouping, called: Called) -> list[Group]:
    """Put rows together; groups come in the order of their worst row."""
    groups: dict[tuple[str, ...], Group] = {}
    for row in rows:
        cause = row.explained.advice.cause
        key, name, why = {
            "cause": (cause.points, cause.name, cause.why),
            "class": (_classes(row), called.name(row.finding.request_class), ""),
            "owner": (row.owners, ", ".join(row.owners), ""),
            "nothing": ((), "", ""),
        }[by]
        groups.setdefault(key, Group(name, why, [])).rows.append(row)
    return list(groups.values())
