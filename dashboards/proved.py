"""What is shown of each kind of request, and on what that rests: the page *Proof*. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ldfi.dashboards.class_story import Stand

Standing = Literal["open", "doubted", "unreached", "shown"]
STANDINGS: Final[dict[Standing, tuple[str, str]]] = {
    "open": ("unknown", "questions are open"),
    "doubted": ("together", "rests on something that was wrong, or was seen once only"),
    "unreached": ("none", "some of it nobody can try"),
    "shown": ("well", "every question is answered"),
}
"""How a kind of request stands, the worst first: its sign, and what that means."""


@dataclass(frozen=True, slots=True)
class Proved:
    """A kind of request. ``share``: of all requests."""

    name: str
    share: float
    stand: Stand

    @property
    def open(self) -> int:
        """How many questions are open."""
        return sum(each.count for each in self.stand.open)

    @property
    def standing(self) -> Standing:
        """Say how it stands: what is worst of it."""
        stand = self.stand
        if self.open or not stand.open_complete:
            return "open"
        if stand.violated or stand.survived_once:
            return "doubted"
        return "unreached" if stand.unreached else "shown"

    @property
    def sentence(self) -> str:
        """Say what is shown: ``2 sets of failures hurt, and all else with up to two at once is
        survived.``"""
        hurt = len(self.stand.findings)
        said = {0: "Nothing was found to hurt", 1: "One set of failures hurts"}.get(
            hurt, f"{hurt:,} sets of failures hurt"
        )
        if self.open:
            more = "" if self.stand.open_complete else " or more"
            are = "question is" if self.open == 1 and not more else "questions are"
            return f"{said}; {self.open:,}{more} {are} open"
        if not self.stand.open_complete:
            return f"{said}; how many questions are open, nobody could count in time"
        beyond = " that can be tried" if self.stand.unreached else ""
        return f"{said}, and all else {_bound(self.stand.max_size)}{beyond} is survived"


def _bound(size: int | None) -> str:
    if size is None:
        return "in any number"
    return {1: "alone", 2: "alone or two at once"}.get(size, f"with up to {size} at once")


def headline(proved: Sequence[Proved]) -> str:
    """Say how much is shown, of all that is looked at."""
    if not proved:
        return "Nothing is shown yet"
    total, rest = len(proved), sum(each.standing == "open" for each in proved)
    questions = sum(each.open for each in proved)
    kinds = "the only kind" if total == 1 else f"all {total:,} kinds"
    if not rest:
        return f"No question is open in {kinds} of request"
    done, are = total - rest, "question is" if questions == 1 else "questions are"
    if not done:
        return f"{questions:,} {are} open, in {kinds} of request"
    have, others = "has" if done == 1 else "have", "other" if rest == 1 else "others"
    shown = f"{done:,} of {total:,} kinds of request {have} no open question"
    return f"{shown}; in the {others} {questions:,} {are} open"
