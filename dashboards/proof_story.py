"""What is shown of each kind of request, and on what that rests: the page *Proof*. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from ldfi.analysis.phrases import said_fault, said_shortly
from ldfi.lineage.unseen_calls import Unseen
from ldfi.solver import Certificate

Standing = Literal["open", "doubted", "unreached", "shown"]
STANDINGS: Final[dict[Standing, tuple[str, str]]] = {
    "open": ("unknown", "questions are open"),
    "doubted": ("together", "rests on something that was wrong, or was seen once only"),
    "unreached": ("none", "some of it nobody can try"),
    "shown": ("well", "every question is answered"),
}
"""How a kind of request stands, the worst first: its sign, and what that means."""


SPELT_OUT: Final = 12
"""Open hypotheses of one size that are spelt out."""


@dataclass(frozen=True, slots=True)
class OpenOfSize:
    """Hypotheses of so many faults that are still open, and some of them in words."""

    size: int
    count: int
    said: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stand:
    """A certificate in numbers."""

    complete: bool
    findings: tuple[str, ...]
    presumed: tuple[str, ...]
    """What hurts in one way, and was not tried in these."""
    unreached: tuple[tuple[str, str], ...]
    """What has no injector, and what to install for it."""
    open: tuple[OpenOfSize, ...]
    open_complete: bool
    experiments: int
    ratio: float | None
    natural: int
    injected: int
    max_size: int | None
    rechecked: int
    violated: int
    unseen: str
    """What cannot be seen, in words; empty: nothing that is known of, or nobody says."""
    survived_once: int | None
    """Sets that were survived in one experiment only; None on certificates from before."""


@dataclass(frozen=True, slots=True)
class Proved:
    """A kind of request. ``share``: of all requests. ``hurting``: findings of it on record."""

    name: str
    share: float
    stand: Stand
    hurting: int

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
        survived.`` What was found in a class that has changed since hurts until it is tried."""
        hurt = len(self.stand.findings) or self.hurting
        said = {0: "Nothing was found to hurt", 1: "One set of failures hurts"}.get(
            hurt, f"{hurt:,} sets of failures hurt"
        )
        if hurt and not self.stand.findings:
            said += ", as was found before"
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


def stand_of(certificate: dict[str, Any], callees: dict[str, str] | None = None) -> Stand:
    """Say in numbers and words where a certificate (its ``data``) stands."""
    good = [run["origin"] for run in runs_of(certificate) if run["good"]]
    bounds = certificate["axioms"]["bounds"] if "axioms" in certificate else certificate["bounds"]
    doubt = certificate.get("doubt") or {}
    return Stand(
        complete=Certificate(certificate).complete,
        findings=tuple(said_shortly(faults, callees) for faults in certificate["findings"]),
        presumed=tuple(
            said_shortly(each["faults"], callees) for each in bounds.get("presumed", ())
        ),
        unreached=tuple(
            (said_fault(fault, callees), install)
            for fault, install in bounds.get("no_injector", {}).items()
        ),
        open=tuple(_by_size(certificate["open"], callees or {})),
        open_complete=bool(certificate["open_complete"]),
        experiments=certificate["experiments"],
        ratio=certificate["lower_bound"]["ratio"],
        natural=good.count("observed"),
        injected=good.count("injected"),
        max_size=bounds["max_size"],
        rechecked=certificate["rechecks"]["tried"],
        violated=certificate["rechecks"]["violated"],
        unseen=Unseen.from_json(certificate.get("unseen")).line,
        survived_once=doubt.get("survived_once"),
    )


def runs_of(certificate: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """List the runs of a certificate, each of which has ``origin``, ``failed``, ``good`` and
    ``count``; those of the format from before had good and bad ones apart."""
    evidence = certificate["evidence"]
    if isinstance(evidence, dict):
        yield from ({**run, "good": True} for run in evidence["good"])
        for run in evidence["bad"]:
            yield {**run, "failed": run["fired"], "good": False, "origin": "injected"}
        return
    for run in evidence:
        if run["origin"] != "caution":
            yield {"good": True, "count": 1, **run}


def _by_size(hypotheses: Iterable[Sequence[str]], callees: dict[str, str]) -> Iterable[OpenOfSize]:
    sizes: dict[int, list[Sequence[str]]] = {}
    for hypothesis in hypotheses:
        sizes.setdefault(len(hypothesis), []).append(hypothesis)
    for size, found in sorted(sizes.items()):
        said = tuple(said_shortly(each, callees) for each in found[:SPELT_OUT])
        yield OpenOfSize(size, len(found), said)
