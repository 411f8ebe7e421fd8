"""Following a campaign until its run is over: a live screen, or plain lines where there is none.

What happens comes as events; how far the campaign is, is asked for beside them, because why
nothing is tried changes without an event. The campaign knows nothing of who watches it: a lost
connection or Ctrl-C ends the watching and nothing else.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import typer
from rich.console import Console

from ldfi.analysis.repairs.request_names import BY_THEIR_NAMES, Called
from ldfi.cli import exits
from ldfi.cli.campaign_view import class_lines, event_line, progress, waiting_lines
from ldfi.cli.control import segment
from ldfi.cli.estimate import so_far
from ldfi.cli.words import clock
from ldfi.errors import NotFound, Unreachable

if TYPE_CHECKING:
    from rich.live import Live

    from ldfi.cli.client import Client
    from ldfi.cli.stream import Event, Stream

LOOK_SECONDS: Final = 1.0
LAST_EVENTS_SECONDS: Final = 3.0
"""How long the last events may come after the campaign itself says that it is over."""

LOST_SECONDS: Final = 120.0
"""How long the service may be gone until watching ends."""

TELL_SECONDS: Final = 10.0
"""Between two lines of progress where there is no screen."""

LOST: Final = "Trying again, for the campaign may well go on"
OVER: Final = frozenset({"finished", "stopped"})
_MINE: Final = frozenset({"campaign", "experiment", "finding", "class"})
_EVERYBODYS: Final = frozenset({"halt", "resume"})

Ends = Literal["with the run", "with an abort"]


@dataclass(slots=True)
class Followed:
    """What was seen: the campaign at last, and its experiments in the order in which they ended."""

    campaign: dict[str, Any]
    ended: list[dict[str, Any]] = field(default_factory=list)

    @property
    def aborted(self) -> bool:
        """Whether the last experiment that ended was aborted."""
        return bool(self.ended) and self.ended[-1]["state"] == "aborted"


def newest_event(client: Client) -> int:
    """Ask for the id of the last event so far; 0 where there is none."""
    items = client.page("/audit", 1)["items"]
    return int(items[0]["id"]) if items else 0


def follow(
    client: Client,
    campaign: dict[str, Any],
    after: int | None,
    console: Console,
    ends: Ends,
    seconds: float = math.inf,
) -> Followed:
    """Show what happens until the campaign's run is over, or an experiment of it is aborted.

    After so many seconds the watching ends in any case. Raises Unreachable when the service stays
    gone, typer.Exit when interrupted.
    """
    from ldfi.cli.stream import Stream

    watch = _Watch(client, Followed(campaign), console, _called(client, console))
    if over(campaign, campaign["run"]):
        return watch.seen
    try:
        with Stream(client, after) as stream, _screen(console) as screen:
            watch.until_over(stream, screen, ends, time.monotonic() + seconds)
    except KeyboardInterrupt:
        console.print(
            f"Campaign {campaign['id']} goes on. `ldfi campaign watch {campaign['id']}` shows it "
            f"again, `ldfi campaign stop {campaign['id']} --reason WHY` ends it.",
            soft_wrap=True,
        )
        raise typer.Exit(exits.INTERRUPTED) from None
    return watch.seen


def over(campaign: dict[str, Any], run: int) -> bool:
    """Whether this run is: the campaign is, or it waits for its next run."""
    return campaign["state"] in OVER or campaign["run"] > run


def _called(client: Client, console: Console) -> Called:
    """Ask how people call requests, where people look."""
    if not console.is_terminal:
        return BY_THEIR_NAMES
    try:
        return Called(client.get("/classes/called"))
    except NotFound:  # a service from before it could say
        return BY_THEIR_NAMES


@contextmanager
def _screen(console: Console) -> Iterator[Live | None]:
    if not console.is_terminal:
        yield None
        return
    from rich.live import Live

    with Live(console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
        yield live


@dataclass(slots=True)
class _Watch:
    client: Client
    seen: Followed
    console: Console
    called: Called = BY_THEIR_NAMES
    _told: tuple[float, str] = (-math.inf, "")
    _experiments: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    _said: set[str] = field(default_factory=set)
    _before: set[str] = field(default_factory=set)

    def until_over(self, stream: Stream, screen: Live | None, ends: Ends, end: float) -> None:
        run, patience = self.seen.campaign["run"], time.monotonic() + LOST_SECONDS
        over_since: float | None = None
        while True:
            events = stream.take(LOOK_SECONDS)
            try:
                self._take(events, screen)
                self._look(screen)
            except Unreachable as error:
                self._lost(patience, error)
                continue
            patience = time.monotonic() + LOST_SECONDS
            if (ends == "with an abort" and self.seen.aborted) or time.monotonic() > end:
                return
            if over(self.seen.campaign, run):
                over_since = over_since or time.monotonic()
                late = time.monotonic() - over_since > LAST_EVENTS_SECONDS
                if late or any(self._is_end(event) for event in events):
                    return

    def _is_end(self, event: Event) -> bool:
        ends = {f"campaign {state}" for state in (*OVER, "scheduled")}
        return event.what in ends and event.subject == self.seen.campaign["id"]

    def _take(self, events: list[Event], screen: Live | None) -> None:
        """Say what happened to this campaign."""
        for event in events:
            line = self._line(event, live=screen is not None)
            if line is not None:
                self.console.print(line, soft_wrap=screen is None)

    def _line(self, event: Event, *, live: bool) -> Any:
        kind, _, news = event.what.partition(" ")
        if kind in _EVERYBODYS:
            return event_line(event, None)
        if kind not in _MINE:
            return None
        if kind == "campaign" or event.what == "class released":
            return event_line(event, None) if event.subject == self.seen.campaign["id"] else None
        if kind == "finding":
            finding = self._get(f"/findings/{segment(event.subject)}")
            classes = {each["name"] for each in self.seen.campaign["classes"]}
            ours = finding is not None and finding["request_class"] in classes
            return event_line(event, finding, self.called) if ours else None
        if kind == "experiment":
            return self._experiment_line(event, news, live=live)
        return None

    def _experiment_line(self, event: Event, news: str, *, live: bool) -> Any:
        """Tell the rest: the live screen shows what is armed by itself."""
        experiment = self._get(f"/experiments/{segment(event.subject)}")
        if experiment is None or experiment["campaign_id"] != self.seen.campaign["id"]:
            return None
        if news in {"harmful", "tolerated", "inconclusive", "aborted"}:
            self.seen.ended.append(experiment)
            return event_line(event, experiment, self.called)
        passing = news in {"observing", "settling"} or (live and news == "armed")
        return None if passing else event_line(event, experiment, self.called)

    def _get(self, path: str) -> dict[str, Any] | None:
        try:
            document: dict[str, Any] = self.client.get(path)
        except NotFound:
            return None
        return document

    def _look(self, screen: Live | None) -> None:
        """How far the campaign is. As lines, only what holds for longer than one look."""
        campaign = self.client.get(f"/campaigns/{segment(self.seen.campaign['id'])}")
        self.seen.campaign = campaign
        if screen is not None:
            picture = progress(campaign, self.console.height, time.time(), self.called)
            screen.update(picture, refresh=True)
            return
        self._tell_progress(campaign, time.monotonic())
        lines = [*waiting_lines(campaign), *class_lines(campaign)]
        for line in lines:
            if line in self._before and line not in self._said:
                self.console.print(line, soft_wrap=True)
        self._said &= set(lines)
        self._said |= self._before & set(lines)
        self._before = set(lines)

    def _tell_progress(self, campaign: dict[str, Any], now: float) -> None:
        """Print how far it is, as a line now and then where anything has changed."""
        at, last = self._told
        known = f"{campaign['experiments']} {[each['open'] for each in campaign['classes']]}"
        if campaign["classes"] and known != last and now - at >= TELL_SECONDS:
            self._told = now, known
            self.console.print(f"{clock(time.time())} {so_far(campaign, time.time())}")

    def _lost(self, patience: float, error: Unreachable) -> None:
        if time.monotonic() > patience:
            raise error
        if LOST not in self._said:
            self.console.print(f"{LOST}: {error}", soft_wrap=True)
        self._said = {LOST}
