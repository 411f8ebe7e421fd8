"""How many questions of a campaign were open, as its experiments went on: a picture. Pure.

A point for each experiment, taken before it began, so what one has answered shows at the next.
New questions come as classes are taken up and where a fallback shows: the line may rise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from markupsafe import Markup

from ldfi.dashboards.experiment_rows import Tried
from ldfi.dashboards.links import to_experiment
from ldfi.dashboards.work.open_hours import Span, closed, open_seconds, over, within
from ldfi.experiments.api.campaign_view import CampaignView
from ldfi.experiments.domain.campaign.calendar import Calendar
from ldfi.experiments.store.schema import AuditRow

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 960, 250, 40, 16, 14, 30
ENOUGH: Final = 4
"""Points from which on it is said when it will be over."""

LABELS: Final = 6
"""Times under the picture, at most."""


@dataclass(frozen=True, slots=True)
class Point:
    """``open``: questions at that moment. ``hurt``: of what was tried then, what it hurt; empty
    where it hurt nobody."""

    at: float
    open: int
    hurt: str = ""
    to: str = ""


@dataclass(frozen=True, slots=True)
class BurnDown:
    """``points``: oldest first, the last as it stands now or stood at the end. ``closed``: when it
    could not try anything, with why. ``done``: when nothing is left if it goes on as so far."""

    points: Sequence[Point]
    closed: Sequence[tuple[Span, str]] = ()
    done: float | None = None

    @property
    def most(self) -> int:
        """The most questions that were open at a time."""
        return max((each.open for each in self.points), default=0)

    @property
    def drawn(self) -> bool:
        """Whether there is anything to see."""
        return len(self.points) > 1 and self.most > 0


def burn_down(
    view: CampaignView,
    calendar: Calendar | None,
    told: Sequence[Tried],
    done: Iterable[AuditRow],
    now: float,
) -> BurnDown:
    """Put together what the experiments of a run have left on record. ``told``: these, and
    ``done``: what was done to the campaign, newest first."""
    points = [
        _point(each, each.summary.open_before)
        for each in reversed(told)
        if each.summary.open_before is not None
    ]
    if not points:
        return BurnDown(())
    going = view.state in {"running", "paused"}
    end = view.ended_at or (now if going else told[0].summary.when)
    points.append(Point(end, sum(each.open for each in view.classes)))
    ahead = expected(points, calendar) if view.state == "running" else None
    shut = closed(calendar, points[0].at, max(end, ahead or end))
    return BurnDown(
        points, [*((span, "outside its hours") for span in shut), *pauses(done, end)], ahead
    )


def _point(each: Tried, count: int) -> Point:
    row = each.summary
    hurt = f"{row.request_class}: {each.said}" if row.outcome == "harmful" else ""
    return Point(row.created_at, count, hurt, to_experiment(row.id))


def expected(points: Sequence[Point], calendar: Calendar | None) -> float | None:
    """Say when the last question is answered if it goes on as from the peak until now, in open
    time; None where too little was tried to say so, or it does not come down."""
    if len(points) < ENOUGH:
        return None
    peak = max(points, key=lambda each: (each.open, each.at))
    last = points[-1]
    answered, took = peak.open - last.open, open_seconds(calendar, peak.at, last.at)
    if answered <= 0 or took <= 0 or not last.open:
        return None
    return over(calendar, last.at, took * last.open / answered)


def pauses(done: Iterable[AuditRow], until: float) -> list[tuple[Span, str]]:
    """Read from what was done to a campaign, newest first, when it was paused, by whom and why."""
    found, end = [], until
    for row in done:
        if row.what == "campaign paused":
            found.append(((row.at, end), f"paused by {row.who}: {row.why}"))
        if row.what.startswith("campaign "):
            end = row.at
    return found


def picture(burn: BurnDown, tz: ZoneInfo) -> Markup:
    """Draw it."""
    first, last = burn.points[0].at, burn.points[-1].at
    end = max(last, burn.done or last)
    span, most = (end - first) or 1.0, burn.most

    def x(at: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (at - first) / span

    def y(count: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - count / most)

    inner = HEIGHT - TOP - BOTTOM
    shades = [
        _PAUSE.format(x(a), TOP, x(b) - x(a), inner, why)
        for stretch, why in burn.closed
        for a, b in within([stretch], first, end)
    ]
    grid = [
        _GRID.format(LEFT, y(count), WIDTH - RIGHT, LEFT - 6, y(count) + 4, count)
        for count in _counts(most)
    ]
    times = [_TIME.format(x(at), HEIGHT - 8, said) for at, said in _times(first, end, tz)]
    line = " ".join(f"{x(each.at):.1f},{y(each.open):.1f}" for each in burn.points)
    ahead = Markup("")
    if burn.done is not None:
        ahead = _AHEAD.format(x(last), y(burn.points[-1].open), x(burn.done), y(0))
    marks = [
        _HURT.format(each.to, x(each.at), y(each.open) - 6, each.hurt)
        for each in burn.points
        if each.hurt
    ]
    drawn = Markup("").join(
        [
            *shades, *grid, *times,
            Markup('<polyline class="real" points="{}"/>').format(line), ahead, *marks,
            Markup('<circle class="dot" cx="{:.1f}" cy="{:.1f}" r="5"/>').format(
                x(last), y(burn.points[-1].open)
            ),
        ]
    )  # fmt: skip
    return Markup(
        '<svg class="burn" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="group" '
        'aria-label="Open questions over time. The list below says the same.">{2}</svg>'
    ).format(WIDTH, HEIGHT, drawn)


_PAUSE: Final = Markup(
    '<rect class="pause" x="{:.1f}" y="{}" width="{:.1f}" height="{}"><title>{}</title></rect>'
)
_GRID: Final = Markup(
    '<path class="grid" d="M{} {:.1f}H{}"/><text x="{}" y="{:.1f}" text-anchor="end">{}</text>'
)
_TIME: Final = Markup('<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>')
_AHEAD: Final = Markup('<path class="ahead" d="M{:.1f} {:.1f}L{:.1f} {:.1f}"/>')
_HURT: Final = Markup(
    '<a href="{}" tabindex="-1"><path class="hurt" d="M{:.1f} {:.1f}l6 6-6 6-6-6z">'
    "<title>{}</title></path></a>"
)


def _counts(most: int) -> list[int]:
    step = max(1, -(-most // 4))
    return [*range(0, most, step), most] if most % step else [*range(0, most + 1, step)]


def _times(first: float, end: float, tz: ZoneInfo) -> list[tuple[float, str]]:
    """Choose times that are told apart: with the day where there are several."""
    whole = end - first > 86_400
    form = "%a %H:%M" if whole else "%H:%M" if end - first > 600 else "%H:%M:%S"
    step = (end - first) / LABELS
    at = [first + step * (number + 0.5) for number in range(LABELS)]
    return [(each, datetime.fromtimestamp(each, tz).strftime(form)) for each in at]
