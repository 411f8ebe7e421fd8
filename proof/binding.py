"""Whether a certificate claims of its runs what the records of these runs say.

A certificate holds runs in the solver's words, and names the traces of some of their requests. By
these its runs are found among the records. Then a good one must not claim to have survived more, or
to have relied on less, than was recorded; and a bad one must not claim to have failed of less. What
traffic that nobody disturbed has shown (``origin: observed``) has no record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ldfi.proof.record import RunRecord

MADE_UP = ("shared@", "down@")
"""Names of the solver's that stand for several faults, and never fire themselves."""


def unbound(
    certificate: Mapping[str, Any], records: Sequence[RunRecord]
) -> Iterator[tuple[bool, str]]:
    """Say what in a certificate is not what was recorded: whether it is false, and in words.

    Raises TypeError, KeyError, AttributeError or ValueError for what is no certificate.
    """
    of_trace = {trace: each for each in records for trace, _ in each.traces.named}
    language = set(certificate["language"]["faults"])
    for place in ("evidence", "rests_on"):
        if place == "rests_on" and place not in certificate:
            continue
        evidence = certificate[place]
        claimed: Counter[str] = Counter()
        for run in evidence["good"]:
            if run["origin"] == "injected":
                claimed["tolerated"] += run["count"]
                yield from _good(run, of_trace, language)
        for run in evidence["bad"]:
            claimed["harmful"] += run["count"]
            yield from _bad(run, of_trace)
        there = Counter(each.verdict for each in records)
        for verdict, many in claimed.items():
            if many > there[verdict]:
                yield False, f"{many} runs are {verdict}, {there[verdict]} of them on record"


def _good(
    run: Mapping[str, Any], of_trace: Mapping[str, RunRecord], language: set[str]
) -> Iterator[tuple[bool, str]]:
    failed = {each for each in run["failed"] if not str(each).startswith(MADE_UP)}
    found = _records(run, of_trace)
    yield from _found(run, found, "tolerated")
    for record in found:
        if not failed <= {*record.fired}:
            yield True, f"{sorted(failed)} did not all fire in {record.experiment}"
        if run["support"] is not None:
            relied_on = {*record.relied_on} & language - {*run["failed"]}
            missing = relied_on - {*run["support"]}
            if missing:
                yield True, f"{record.experiment} relied on {min(missing)}, which is left out"
            if record.degraded:
                yield True, f"{record.experiment} was degraded, which proves only what fired"


def _bad(run: Mapping[str, Any], of_trace: Mapping[str, RunRecord]) -> Iterator[tuple[bool, str]]:
    found = _records(run, of_trace)
    yield from _found(run, found, "harmful")
    for record in found:
        if not {*record.fired} <= {*run["fired"]}:
            yield True, f"{record.experiment} failed of more than {sorted(run['fired'])}"


def _records(run: Mapping[str, Any], of_trace: Mapping[str, RunRecord]) -> list[RunRecord]:
    found = {id(of_trace[each]): of_trace[each] for each in run["traces"] if each in of_trace}
    return list(found.values())


def _found(
    run: Mapping[str, Any], found: Sequence[RunRecord], verdict: str
) -> Iterator[tuple[bool, str]]:
    if not found or any(
        all(t != n for r in found for n, _ in r.traces.named) for t in run["traces"]
    ):
        what = sorted(run["failed"] if verdict == "tolerated" else run["fired"])
        yield False, f"a run of {what} that is {verdict} is not on record"
    for record in found:
        if record.verdict != verdict:
            yield True, f"{record.experiment} is called {verdict} and was {record.verdict}"
