"""An independent check of a certificate, from what is written in it alone.

It shares no code with the rest of the solver and needs none of it: no SAT, no search. It trusts
that the recorded runs happened, and what the certificate lists as its axioms; these it says in
words, so that nobody takes them for proved. All else it works out anew: the clauses from the good
runs, every figure, every finding; and it replays the derivation, in which each step names the run
that decides. It ends on every document, and refuses what would take it too long.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ldfi.checker.solving.assumed import assumed, left_out
from ldfi.checker.solving.claims import wrong_claims
from ldfi.checker.solving.effort import Effort, TooMuch
from ldfi.checker.solving.evidence import World, firm_only
from ldfi.checker.solving.figures import wrong_figures
from ldfi.checker.solving.language import Vocabulary
from ldfi.checker.solving.replay import replay
from ldfi.checker.solving.schema import FORMAT, malformed

__all__ = ["FORMAT", "Report", "UnreadableCertificate", "check", "examine"]


class UnreadableCertificate(ValueError):  # noqa: N818
    """This is nothing that could be checked: not of this format, or far too large."""


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a check.

    ``problems``: what is wrong, nothing if it is borne out. ``open``: what keeps it from being
    complete. ``assumed``: what it is true under, by topic. ``left_out``: what was never tried
    because somebody said so: sets of faults, of each of which one has to be out of scope.
    """

    problems: tuple[str, ...]
    open: tuple[str, ...] = ()
    assumed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: tuple[frozenset[str], ...] = ()
    max_size: int | None = None


def check(certificate: Any) -> list[str]:
    """Return what is wrong with a certificate, in words; an empty list if nothing is."""
    try:
        return list(examine(certificate).problems)
    except UnreadableCertificate as error:
        return [str(error)]


def examine(certificate: Any) -> Report:
    """Check a certificate. Raises UnreadableCertificate where it is none of this format."""
    if not isinstance(certificate, dict):
        raise UnreadableCertificate("this is not a certificate: it is not a JSON object")
    if certificate.get("format") == "ldfi-certificate/1":
        raise UnreadableCertificate(
            "this certificate is of an older format, 'ldfi-certificate/1', which lacks what a check"
            f" needs; a campaign that runs again writes one in {FORMAT!r}"
        )
    if certificate.get("format") != FORMAT:
        raise UnreadableCertificate(f"this is not a certificate in the format {FORMAT!r}")
    effort = Effort()
    try:
        problem = malformed(certificate, effort)
        if problem is not None:
            return Report((problem,))
        return _examined(certificate, effort)
    except TooMuch as error:
        raise UnreadableCertificate(str(error)) from error


def _examined(data: dict[str, Any], effort: Effort) -> Report:
    language = Vocabulary(data["axioms"], effort)
    every = World(language, data, effort, firm=False)
    problems = wrong_figures(every, data) or wrong_claims(every, data)
    if problems:
        return Report(tuple(problems))
    walked = replay(every, data, data["derivation"]["steps"])
    problems += walked.problems
    firmly = data["derivation"]["firm"]
    if (firmly is not None) != firm_only(data):
        problems.append("what the firm runs leave open has to be derived where not all are firm")
    elif firmly is not None:
        world = World(language, data, effort, firm=True)
        world.learn_all()
        firm = replay(world, data, firmly)
        problems += (f"by the firm runs, {each}" for each in firm.problems)
        walked = walked if walked.unknown else firm
    if data["open_complete"] and walked.unknown:
        problems.append("not all that is open is listed, although it says so")
    return Report(
        problems=tuple(problems),
        open=tuple(_open(data)),
        assumed=assumed(data),
        left_out=tuple(left_out(language, data)),
        max_size=data["axioms"]["bounds"]["max_size"],
    )


def _open(data: dict[str, Any]) -> list[str]:
    found = []
    if data["open"]:
        found.append(f"{len(data['open'])} hypotheses are open")
    if data["doubt"] is not None and data["doubt"]["unsettled"]:
        found.append(f"{len(data['doubt']['unsettled'])} contradictions are unsettled")
    if not data["open_complete"]:
        found.append("not all that is open is listed")
    unseen = data.get("unseen")
    if unseen is not None and unseen["bound"] is not None and unseen["at_most"] > unseen["bound"]:
        share, bound = f"{100 * unseen['at_most']:.3g} %", f"{100 * unseen['bound']:.3g} %"
        found.append(f"up to {share} of calls cannot be seen, and {bound} was asked for")
    return found
