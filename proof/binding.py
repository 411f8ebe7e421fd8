"""Whether a certificate claims of its runs what the records of these runs say.

A certificate holds runs in the solver's words, and names the traces of some of their requests, or
the experiment itself (``proof``). By these its runs are found among the records. Then a good one
must not claim to have survived more, or to have relied on less, than was recorded; and a bad one
must not claim to have failed of less. What traffic that nobody disturbed has shown (``origin:
observed``) has no record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ldfi.proof.record import RunRecord

MADE_UP: Final = ("shared@", "down@")
"""Names of the solver's that stand for several faults, and never fire themselves."""


@dataclass(frozen=True, slots=True)
class RunClaim:
    """What a certificate says of a run, or of ``count`` alike. ``failed``: what fired in it."""

    verdict: str
    failed: frozenset[str]
    support: frozenset[str] | None
    traces: tuple[str, ...]
    experiment: str | None
    count: int

    @property
    def name(self) -> str:
        """Name it to people."""
        return f"a run of {sorted(self.failed)} that is {self.verdict}"


def unbound(
    certificate: Mapping[str, Any], records: Sequence[RunRecord]
) -> Iterator[tuple[bool, str]]:
    """Say what in a certificate is not what was recorded: whether it is false, and in words.

    Raises TypeError, KeyError, AttributeError or ValueError for what is no certificate.
    """
    language, groups = _read(certificate)
    by_name = {each.experiment: each for each in records}
    by_trace = {trace: each for each in records for trace, _ in each.traces.named}
    there = Counter(each.verdict for each in records)
    for claims in groups:
        claimed: Counter[str] = Counter()
        for claim in claims:
            claimed[claim.verdict] += claim.count
            found, whole = _found(claim, by_name, by_trace)
            if not whole:
                yield False, f"{claim.name} is not on record"
            for record in found:
                yield from ((True, said) for said in _wrong(claim, record, language))
        for verdict, many in claimed.items():
            if many > there[verdict]:
                yield False, f"{many} runs are {verdict}, {there[verdict]} of them on record"


def _wrong(claim: RunClaim, record: RunRecord, language: frozenset[str]) -> Iterator[str]:
    """Say where a claim goes beyond the record."""
    name, fired = record.experiment, frozenset(record.fired)
    if record.verdict != claim.verdict:
        yield f"{name} is called {claim.verdict} and was {record.verdict}"
    if claim.verdict == "harmful":
        if not fired <= claim.failed:
            yield f"{name} failed of more than {sorted(claim.failed)}"
        return
    more = {each for each in claim.failed if not each.startswith(MADE_UP)} - fired
    if more:
        yield f"{min(more)} did not fire in {name}"
    if claim.support is not None:
        missing = (frozenset(record.relied_on) & language) - claim.failed - claim.support
        if missing:
            yield f"{name} relied on {min(missing)}, which is left out"
        if record.degraded:
            yield f"{name} was degraded, which proves only what fired"


def _found(
    claim: RunClaim, by_name: Mapping[str, RunRecord], by_trace: Mapping[str, RunRecord]
) -> tuple[Iterable[RunRecord], bool]:
    """Find the records of a claim; say whether all that it names is on record."""
    if claim.experiment is not None:
        found = [by_name[claim.experiment]] if claim.experiment in by_name else []
        return found, bool(found)
    of_traces = [by_trace[each] for each in claim.traces if each in by_trace]
    whole = bool(of_traces) and len(of_traces) == len(claim.traces)
    return {each.experiment: each for each in of_traces}.values(), whole


def _read(certificate: Mapping[str, Any]) -> tuple[frozenset[str], list[list[RunClaim]]]:
    """Read the faults that a certificate speaks of, and its groups of claims, in either format."""
    if "axioms" in certificate:
        language = frozenset(certificate["axioms"]["language"]["faults"])
        tried = (run for run in certificate["evidence"] if run["origin"] == "injected")
        return language, [
            [_claim(run, good=run["good"]) for run in tried if run["good"] is not None]
        ]
    language = frozenset(certificate["language"]["faults"])
    groups = [certificate[name] for name in ("evidence", "rests_on") if name in certificate]
    return language, [
        [
            *(_claim(run, good=True) for run in each["good"] if run["origin"] == "injected"),
            *(_claim(run, good=False) for run in each["bad"]),
        ]
        for each in groups
    ]


def _claim(run: Mapping[str, Any], *, good: bool) -> RunClaim:
    support = run.get("support")
    return RunClaim(
        verdict="tolerated" if good else "harmful",
        failed=frozenset(run["fired"] if "fired" in run else run["failed"]),
        support=None if support is None else frozenset(support),
        traces=tuple(run["traces"]),
        experiment=run.get("proof", {}).get("experiment"),
        count=int(run.get("count", 1)),
    )
