"""What the page of a campaign tells: where it stands, what it was to cost and has cost, what its
experiments came to. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ldfi.dashboards.experiment_rows import Tried
from ldfi.dashboards.words import duration, listed, number
from ldfi.experiments.api.campaign_view import CampaignView, EndingView
from ldfi.experiments.domain.campaign.calendar import Calendar, Schedule
from ldfi.experiments.domain.campaign.campaign import Definition
from ldfi.experiments.domain.judging.counts import DeviceCounts
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.queries.campaign_summary import ClassCost
from ldfi.experiments.queries.wording import OUTCOMES

SHOWN: Final = 6
"""Experiments of a fold that are shown before one asks for more."""

_DAYS: Final = {
    "mon": "Monday", "tue": "Tuesday", "wed": "Wednesday", "thu": "Thursday", "fri": "Friday",
    "sat": "Saturday", "sun": "Sunday",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Folded:
    """Experiments of one outcome, newest first. ``sign``: the mark before them; ``said``: what
    they are, ``aside``: what that means."""

    came: str
    sign: str
    said: str
    aside: str
    rows: Sequence[Tried]

    @property
    def more(self) -> int:
        """How many are not shown at once."""
        return max(0, len(self.rows) - SHOWN)


def title(view: CampaignView, waiting: int) -> str:
    """Say in a sentence where it stands. ``waiting``: experiments that wait for an approval."""
    name = said_name(view)
    open_now, found = sum(each.open for each in view.classes), found_in(view)
    if view.state == "scheduled":
        return f"{name} waits for its {'first' if view.run < 2 else 'next'} run"
    if view.state == "paused":
        return f"{name} is paused"
    if view.state == "running":
        if waiting:
            return f"{name} waits for your yes"
        if not view.classes:
            return f"{name} waits for requests that it can explore"
        return f"{name}: {_open(open_now)}"
    if not view.classes:
        over = "was stopped" if view.state == "stopped" else "is over"
        return f"{name} {over}: nothing was tried"
    if view.state == "stopped":
        open_still = _open(open_now) if open_now else "before its end"
        return f"{name} was stopped: {open_still}, {found}"
    if view.ending is None or view.ending.kind == "complete":
        return f"{name} is over: {found}, and {_open(open_now)}"
    return f"{name} is over: {listed([*_left(view.ending), found])}"


def _left(ending: EndingView) -> list[str]:
    """Say what a run left that is not complete: nobody may think that nothing was."""
    said = [_ENDED[ending.kind]] if ending.kind in _ENDED else []
    count = sum(sum(each.why.values()) for each in ending.left)
    if count:
        said.append(_open(count))
    if any(each.silent or each.unreached for each in ending.left):
        said.append("not everything could be tried")
    if ending.held:
        said.append("kinds of request are held that have changed")
    return said or ["not everything is decided"]


_ENDED: Final[Mapping[str, str]] = {
    "out of time": "the solver ran out of time",
    "out of budget": "its devices are spent",
}


def said_name(view: CampaignView) -> str:
    """Name it as people do."""
    return f"“{view.name}”" if view.name else f"Campaign {view.id}"


def found_in(view: CampaignView) -> str:
    """Say how many weaknesses are known in its classes."""
    count = sum(len(each.findings) for each in view.classes)
    return {0: "no weakness was found", 1: "one weakness"}.get(count, f"{count:,} weaknesses")


def _open(count: int) -> str:
    return {0: "no question is open", 1: "one question is open"}.get(
        count, f"{count:,} questions are open"
    )


def does(definition: Definition) -> str:
    """Say what it tries, on what: ``Tries every failure and every two at once on GET /play.``"""
    size = definition.settings.max_size
    if definition.hypotheses:
        what = "just what was asked for"
    else:
        what = {
            1: "every failure alone", 2: "every failure and every two at once",
        }.get(size, f"every failure and up to {size} at once")  # fmt: skip
    names = definition.classes
    on = " and ".join(names) if 0 < len(names) < 3 else f"{len(names)} kinds of request"
    return f"Tries {what} on {on if names else 'every kind of request that is fit'}."


def bounds(settings: Settings) -> str:
    """Say what it may cost at most: that is promised, and the service holds it."""
    at_once = settings.members * settings.concurrency
    return (
        f"{number(settings.member_budget)} devices in a run, never more than "
        f"{number(min(at_once, settings.member_budget))} at once"
    )


def hours(calendar: Calendar | None) -> str:
    """Say when it may try anything: ``Monday to Thursday, 09:00 to 16:00 (Europe/Berlin)``."""
    if calendar is None:
        return "at any time"
    days = [_DAYS[day] for day in _DAYS if day in calendar.days]
    order = [*_DAYS.values()]
    first = order.index(days[0]) if days else 0
    if len(days) > 2 and days == order[first : first + len(days)]:
        on = f"{days[0]} to {days[-1]}"
    else:
        on = ", ".join(days) or "on any day"
    by = f"{calendar.hours[0]} to {calendar.hours[1]}" if calendar.hours else "all day"
    return f"{on}, {by} ({calendar.timezone})"


def begins(schedule: Schedule | None) -> str:
    """Say when its runs begin."""
    return f"at {schedule.cron} ({schedule.timezone})" if schedule else "one run"


def keeps_safe(definition: Definition) -> list[str]:
    """List what bounds the harm, as the service holds it."""
    settings = definition.settings
    said = [
        f"Each experiment ends after {duration(settings.window)} at the latest, or as soon as the "
        "answer is clear.",
        "Nothing stays armed unless this service goes on saying so: if it stops, so does all that "
        "is injected, within seconds.",
        f"An experiment is called off when more than {settings.guardrail:.0%} of the devices fail "
        f"that are left alone, and nothing begins where fewer than {settings.steady:.0%} of "
        "requests go well by themselves.",
    ]
    if settings.admission == "staged":
        said.append("Devices are let in some at a time, so that few are hurt before it is clear.")
    if settings.approve_above is not None:
        said.append(
            f"What may hurt more than {number(settings.approve_above)} devices waits for an "
            "operator's yes."
        )
    said += [
        f"Nothing runs from {each.first} to {each.last}: {each.why}."
        for each in (definition.calendar.blackouts if definition.calendar else ())
    ]
    return [*said, "Any operator can halt everything, on every page."]


def folds(tried: Iterable[Tried]) -> list[Folded]:
    """Put experiments together by what came of them; what hurt stands first."""
    found = list(tried)
    return [fold for fold in (_fold(found, *each) for each in _FOLDS) if fold.rows]


_FOLDS: Final[Sequence[tuple[frozenset[str], str, str, str]]] = (
    (frozenset({"proposed", "waiting", "armed", "observing", "settling"}), "unknown", "go on", ""),
    (frozenset({"harmful"}), "alone", OUTCOMES["harmful"], ""),
    (
        frozenset({"tolerated"}),
        "well",
        OUTCOMES["tolerated"],
        "devices that met it went on as the others",
    ),
    (frozenset({"inconclusive"}), "unknown", "gave no answer", "so nothing is known from them"),
    (frozenset({"aborted"}), "none", OUTCOMES["aborted"], "nothing is learned from them"),
)


def _fold(tried: Sequence[Tried], of: frozenset[str], sign: str, said: str, aside: str) -> Folded:
    rows = [each for each in tried if each.summary.outcome in of]
    one = len(rows) == 1
    verb = {"go on": "goes on" if one else "go on"}.get(said, said)
    if of <= {"harmful", "tolerated", "aborted"}:
        verb = f"{'was' if one else 'were'} {said}"
    came = rows[0].summary.outcome if len(of) == 1 and rows else ""
    if came == "harmful":
        made = len({(each.summary.request_class, each.summary.hypothesis) for each in rows})
        aside = f"with {made:,} set{'' if made == 1 else 's'} of failures; what hurt is tried twice"
    return Folded(came, sign, f"{len(rows):,} {verb}", aside, rows)


def by_class(costs: Mapping[str, ClassCost]) -> list[tuple[str, DeviceCounts]]:
    """List kinds of request with their devices, those with most hurt first."""
    found = [(name, cost.counts) for name, cost in costs.items()]
    return sorted(found, key=lambda each: (-each[1].hurt, -each[1].treated, each[0]))
