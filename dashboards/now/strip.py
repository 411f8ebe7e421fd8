"""The strip: every experiment of a stretch of time, a row for each request class. Pure.

Each is a mark that says its verdict by colour and by shape. Those of one verdict that would lie on
each other are one mark, which says how many they are and leads to all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from markupsafe import Markup

from ldfi.dashboards.experiment_rows import KINDS, Kind
from ldfi.dashboards.links import to_experiment, to_was_it_us
from ldfi.dashboards.now.day_totals import EVERY
from ldfi.experiments.domain.judging.sequential_tests import Verdict
from ldfi.experiments.domain.judging.was_it_us import Bunch, Exposure

EVERY_HOURS: Final = 3
HEIGHT: Final = 28

_SHAPES: Final[dict[Kind, str]] = {
    "tolerated": "M-1.5 28V16H1.5V28z",
    "none": "M-4 22a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "harmful": "M-1.5 28V12L-6 7L0 1L6 7L1.5 12V28z",
    "running": "M-2.5 28V0H2.5V28z",
}
"""In the order in which they are drawn: what must be seen comes last."""

Bunches = tuple[str, list[Bunch], Exposure]
"""A class, its experiments, and what they did together."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One experiment, or several that would lie on each other. ``place``: from 0 to 1."""

    kind: Kind
    place: float
    since: float
    what: str
    to: str


@dataclass(frozen=True, slots=True)
class Row:
    """The experiments of one request class."""

    request_class: str
    exposure: Exposure
    marks: tuple[Mark, ...]

    @property
    def picture(self) -> Markup:
        """Draw its marks. The table beside it says the same, so whoever hears a page is spared."""
        drawn = Markup("").join(map(_drawn, self.marks))
        return Markup(
            '<svg class="track" width="100%" height="{}" aria-hidden="true">{}</svg>'
        ).format(HEIGHT, drawn)


@dataclass(frozen=True, slots=True)
class Hour:
    """A label below the strip."""

    place: float
    name: str


def kind_of(verdict: Verdict | None, *, running: bool) -> Kind:
    """Say which mark an experiment is."""
    if running:
        return "running"
    if verdict == "harmful":
        return "harmful"
    return "tolerated" if verdict == "tolerated" else "none"


def by_class(bunches: Iterable[Bunch]) -> list[Bunches]:
    """Put together what is of one class: those with harm first, then the busiest."""
    found = defaultdict[str, list[Bunch]](list)
    for each in bunches:
        found[each.request_class].append(each)
    summed = [
        (name, some, sum((b.exposure for b in some), Exposure())) for name, some in found.items()
    ]
    summed.sort(
        key=lambda one: (
            -one[2].running,
            not (one[2].harmful or one[2].hurting),
            -one[2].experiments,
            one[0],
        )
    )
    return summed


def rows(
    found: Iterable[Bunches], since: float, until: float, said: Mapping[str, str]
) -> list[Row]:
    """Make a row for each class. ``said``: by experiment, what is said of it beside its mark."""
    return [
        Row(name, exposure, tuple(_marks(some, since, until, said)))
        for name, some, exposure in found
    ]


def hours(since: float, until: float, tz: ZoneInfo) -> list[Hour]:
    """List the full hours to label, by the clock of that zone."""
    at = datetime.fromtimestamp(since, tz).replace(minute=0, second=0, microsecond=0)
    found = []
    while at.timestamp() <= until:
        place = (at.timestamp() - since) / (until - since)
        if at.hour % EVERY_HOURS == 0 and place >= 0:
            found.append(Hour(place, f"{at:%a} 00:00" if at.hour == 0 else f"{at:%H:%M}"))
        at = datetime.fromtimestamp((at + timedelta(hours=1)).timestamp(), tz)
    return found


def axis(labels: Sequence[Hour]) -> Markup:
    """Draw the labels of the hours."""
    parts = (
        Markup('<text x="{:.2f}%" y="13" text-anchor="middle">{}</text>').format(
            100 * each.place, each.name
        )
        for each in labels
        if 0.02 < each.place < 0.98
    )
    return Markup('<svg class="hours" width="100%" height="16" aria-hidden="true">{}</svg>').format(
        Markup("").join(parts)
    )


def _marks(
    bunches: Iterable[Bunch], since: float, until: float, said: Mapping[str, str]
) -> Iterator[Mark]:
    order = list(_SHAPES)
    kinds = ((kind_of(each.verdict, running=each.exposure.running > 0), each) for each in bunches)
    for kind, each in sorted(kinds, key=lambda one: (order.index(one[0]), one[1].since)):
        if each.alone:
            place = min(1.0, max(0.0, (each.since - since) / (until - since)))
            what = said.get(each.first, KINDS[kind])
            yield Mark(kind, place, each.since, what, to_experiment(each.first))
        else:
            window = (each.step * EVERY, (each.step + 1) * EVERY)
            what = f"{each.exposure.experiments:,} experiments: {KINDS[kind]}"
            to = to_was_it_us(*window, each.request_class)
            place = min(1.0, max(0.0, (sum(window) / 2 - since) / (until - since)))
            yield Mark(kind, place, each.since, what, to)


def _drawn(mark: Mark) -> Markup:
    return Markup(
        '<svg x="{:.2f}%" overflow="visible" width="1"><a href="{}" tabindex="-1">'
        '<path class="mark {}" d="{}"><title>{}</title></path></a></svg>'
    ).format(100 * mark.place, mark.to, mark.kind, _SHAPES[mark.kind], mark.what)
