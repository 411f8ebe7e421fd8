"""Whether a certificate claims of its runs what the records of these runs say.

A certificate holds runs in the solver's words. Each experiment carries as its ``proof`` what its
verdict came from; older ones name the traces of some of their requests. By these its runs are found
among the records. Then a proof must be what was recorded, and no two runs share one. A good run
must not claim to have survived more, or to have relied on less, than was recorded; and a bad one
must not claim to have failed of less. Harm that was recorded and that nothing in the certificate
speaks of is missing. What traffic that nobody disturbed has shown (``origin: observed``) has no
record.

Runs that tried the same bear each other out: what fired in two of them counts as survived in all.

Where only bystanders were hurt, that is interference and proves no harm. By an earlier rule it was
a suspicion, and harm the second time: what rests on that is not false, and lacks a proof.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ldfi.checker.canonical import canonical
from ldfi.checker.checkpoint import Remains
from ldfi.checker.outcome import AnyRecord

MADE_UP: Final = ("shared@", "down@")
"""Names of the solver's that stand for several faults, and never fire themselves."""
UNDECIDED: Final = "inconclusive"

Twice = defaultdict[frozenset[str], frozenset[str]]


@dataclass(frozen=True, slots=True)
class RunClaim:
    """What a certificate says of a run, or of ``count`` alike. ``failed``: what fired in it;
    ``tried``: what was to fail, None where that is not said."""

    verdict: str
    failed: frozenset[str]
    support: frozenset[str] | None
    traces: tuple[str, ...]
    proof: Mapping[str, Any]
    count: int
    tried: frozenset[str] | None

    @property
    def name(self) -> str:
        """Name it to people."""
        return f"a run of {sorted(self.failed)} that is {self.verdict}"


def unbound(
    certificate: Mapping[str, Any],
    records: Sequence[AnyRecord],
    pruned: Sequence[Remains] = (),
) -> Iterator[tuple[bool, str]]:
    """Return claims of a certificate that differ from the record: whether each is false, and in
    words.

    ``pruned``: what is left of runs whose records were dropped.

    Raises TypeError, KeyError, AttributeError or ValueError for what is no certificate.
    """
    language, groups = _read(certificate)
    by_name = {each.experiment: each for each in records}
    by_trace = {trace: each for each in records for trace, _ in each.traces.named}
    there = Counter(verdict for each in records for verdict in _may_be_called(each))
    there.update(verdict for each in pruned for verdict in _may_have_been_called(each))
    twice = _twice([*records, *pruned])
    for number, claims in enumerate(groups):
        yield from ((True, said) for said in _shared(claims))
        claimed: Counter[str] = Counter()
        for claim in claims:
            claimed[claim.verdict] += claim.count
            found, whole = _found(claim, by_name, by_trace)
            if not whole:
                yield False, f"{claim.name} is not on record"
            for record in found:
                yield from ((True, said) for said in _wrong(claim, record, language, twice))
                if claim.verdict == "tolerated" and (beyond := unspoken(record, language)):
                    of = f"{record.experiment} relied on {min(beyond)}"
                    yield False, f"{of}, of which the certificate says nothing"
                if claim.verdict == "harmful" and _of_bystanders(record):
                    yield False, f"{record.experiment} shows harm of bystanders alone"
        for verdict, many in claimed.items():
            if many > there[verdict]:
                yield False, f"{many} runs are {verdict}, {there[verdict]} of them on record"
        if not number:  # what the first format rests on besides are some of the same
            yield from ((False, said) for said in _left_out(claims, [*records, *pruned]))


def _wrong(
    claim: RunClaim, record: AnyRecord, language: frozenset[str], twice: Twice
) -> Iterator[str]:
    """Return where a claim goes beyond the record."""
    name, fired = record.experiment, frozenset(record.fired)
    written = record.to_json()
    other = [each for each in claim.proof if each not in written]
    other += [e for e in written if e in claim.proof and not _same(claim.proof[e], written[e])]
    if other:
        yield f"the {other[0]} in the proof of {name} is not what was recorded"
    if claim.tried is not None and claim.proof and claim.tried != frozenset(record.hypothesis):
        yield f"{name} is said to have tried {sorted(claim.tried)}"
    if claim.verdict not in _may_be_called(record):
        yield f"{name} is called {claim.verdict} and was {record.verdict}"
    if claim.verdict == UNDECIDED:
        return
    if claim.verdict == "harmful":
        if not fired <= claim.failed:
            yield f"{name} failed of more than {sorted(claim.failed)}"
        return
    fired |= twice[frozenset(record.hypothesis)]
    more = {each for each in claim.failed if not each.startswith(MADE_UP)} - fired
    if more:
        yield f"{min(more)} did not fire in {name}"
    if claim.support is not None:
        missing = (frozenset(record.relied_on) & language) - claim.failed - claim.support
        if missing:
            yield f"{name} relied on {min(missing)}, which is left out"
        if record.degraded:
            yield f"{name} was degraded, which proves only what fired"


def unspoken(record: AnyRecord, language: Collection[str]) -> frozenset[str]:
    """Return faults that a survived run relied on and that a certificate leaves out, although it
    names such faults elsewhere."""
    kinds = {name.partition("@")[0] for name in language}
    relied_on = record.relied_on if record.verdict == "tolerated" else ()
    return frozenset(
        each for each in relied_on if each not in language and each.partition("@")[0] in kinds
    )


def _same(one: object, other: object) -> bool:
    return canonical(one) == canonical(other)


def _may_be_called(record: AnyRecord) -> set[str]:
    """Return what a run may be called. Where only bystanders were hurt it says nothing; where that
    is said by an earlier rule, which told what had fired, it may be called harm as well."""
    said = set(filter(None, [record.verdict]))
    if not _of_bystanders(record):
        return said
    return said | {UNDECIDED} | ({"harmful"} if record.fired else set())


def _of_bystanders(record: AnyRecord) -> bool:
    """Return whether bystanders were hurt, and treated devices are not shown to have been."""
    return record.overruled == "bystanders"


def _may_have_been_called(left: Remains) -> set[str]:
    """Return the same of a run that was pruned. Of an undecided one it is only on record what fired
    where bystanders were hurt, by an earlier rule."""
    suspicious = left.verdict == UNDECIDED and bool(left.fired)
    return {*filter(None, [left.verdict]), *(["harmful"] if suspicious else [])}


def _twice(records: Iterable[AnyRecord | Remains]) -> Twice:
    """Return, for each set that was tried, the faults that fired in two survived runs of it."""
    times: defaultdict[frozenset[str], Counter[str]] = defaultdict(Counter)
    for each in records:
        if each.verdict == "tolerated":
            times[frozenset(each.hypothesis)].update(each.fired)
    found: Twice = defaultdict(frozenset)
    for tried, counted in times.items():
        found[tried] = frozenset(fault for fault, many in counted.items() if many > 1)
    return found


def _shared(claims: Iterable[RunClaim]) -> Iterator[str]:
    """Report runs that were one."""
    times = Counter(each.proof["experiment"] for each in claims if each.proof)
    yield from (f"{many} runs claim to be {name}" for name, many in times.items() if many > 1)


def _left_out(claims: Sequence[RunClaim], records: Iterable[AnyRecord | Remains]) -> Iterator[str]:
    """Report harm that nothing speaks of: no run that failed of as little, nor two that tried the
    same since and were survived. Of bystanders alone nothing has to."""
    harmful = [each.failed for each in claims if each.verdict == "harmful"]
    survived = Counter(each.tried for each in claims if each.verdict == "tolerated")
    for each in records:
        known = any(failed <= frozenset(each.fired) for failed in harmful)
        outdone = survived[frozenset(each.hypothesis)] > 1
        others = not isinstance(each, Remains) and _of_bystanders(each)
        if each.verdict == "harmful" and not (known or outdone or others):
            name = f"pruned run {each.number}" if isinstance(each, Remains) else each.experiment
            yield f"{name} was harmful, and is left out"


def _found(
    claim: RunClaim, by_name: Mapping[str, AnyRecord], by_trace: Mapping[str, AnyRecord]
) -> tuple[Iterable[AnyRecord], bool]:
    """Find the records of a claim; say whether all that it names is on record."""
    if claim.proof:
        found = by_name.get(claim.proof["experiment"])
        return ([], False) if found is None else ([found], True)
    of_traces = [by_trace[each] for each in claim.traces if each in by_trace]
    whole = bool(of_traces) and len(of_traces) == len(claim.traces)
    return {each.experiment: each for each in of_traces}.values(), whole


def _read(certificate: Mapping[str, Any]) -> tuple[frozenset[str], list[list[RunClaim]]]:
    """Read the faults that a certificate speaks of, and its groups of claims, in either format."""
    if "axioms" in certificate:
        language = frozenset(certificate["axioms"]["language"]["faults"])
        tried = (run for run in certificate["evidence"] if run["origin"] == "injected")
        claims = (_claim(run, run["good"]) for run in tried)
        # without a verdict it decides nothing, and older ones name nothing to find it by
        return language, [[each for each in claims if each.proof or each.verdict != UNDECIDED]]
    language = frozenset(certificate["language"]["faults"])
    groups = [certificate[name] for name in ("evidence", "rests_on") if name in certificate]
    return language, [
        [
            *(_claim(run, True) for run in each["good"] if run["origin"] == "injected"),
            *(_claim(run, False) for run in each["bad"]),
        ]
        for each in groups
    ]


def _claim(run: Mapping[str, Any], good: bool | None) -> RunClaim:
    support, proof = run.get("support"), dict(run.get("proof", {}))
    if proof and not isinstance(proof["experiment"], str):
        raise TypeError("a proof names its experiment")
    return RunClaim(
        verdict={True: "tolerated", False: "harmful", None: UNDECIDED}[good],
        failed=frozenset(run["fired"] if "fired" in run else run["failed"]),
        support=None if support is None else frozenset(support),
        traces=tuple(run["traces"]),
        proof=proof,
        count=int(run.get("count", 1)),
        tried=frozenset(run["injected"]) if "injected" in run else None,
    )
