"""What is said about an explored test: to its developer, and to programs.

The document of a test is plain JSON, for it travels with pytest's own reports, from the workers of
pytest-xdist too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from ldfi.analysis.words import happens
from ldfi.experiments.domain.judging.killed_process import KILLED
from ldfi.explore.external.run_result import TO_SET
from ldfi.explore.pytest.evidence import class_evidence
from ldfi.explore.pytest.loop import NO_CALL, Explored, Finding
from ldfi.explore.pytest.marker import Bounds
from ldfi.explore.pytest.service import service_name
from ldfi.fit.protocol.faults import DOWN
from ldfi.fit.protocol.kinds import outlasted
from ldfi.fit.protocol.points import Point
from ldfi.lineage.outline import Outline, Row, outline, side_by_side

Document = dict[str, Any]
NAMED: Final = 5
"""Open hypotheses that people are told of; the report has more."""
Keep = Callable[[Finding, tuple[Outline, ...], tuple[Outline, ...]], tuple[str, str]]
"""Writes the scenario of a finding, given the lineages of a good run and the failing one. Returns
where it is, or an empty text and why there is none."""


def document_of(
    test: str,
    explored: Explored,
    bounds: Bounds,
    seconds: float,
    broken_teardowns: int,
    keep: Keep,
    names: Mapping[str, str] = MappingProxyType({}),
) -> Document:
    """Write all that is known of a test, as JSON. ``keep`` writes scenario files. ``names``: of
    hosts with ports, by their addresses; they stand in what people read.

    ``evidence`` goes into a file of its own, that of the session.
    """
    names = _learned(explored) | dict(names)
    return {
        "test": test,
        "verdict": explored.verdict,
        "reason": explored.reason,
        "runs": explored.runs,
        "exhaustive": explored.exhaustive,
        "max_size": bounds.max_size,
        "kinds": list(bounds.kinds),
        "seed": bounds.seed,
        "seconds": round(seconds, 3),
        "kept": explored.kept,
        "not_kept": explored.not_kept,
        "points": explored.points,
        "findings": [_finding(each, explored, keep, names) for each in explored.findings],
        "refuted": _sets(explored.refuted),
        "never_fired": _sets(explored.never_fired),
        "unfired": _sets(explored.unfired),
        "open": explored.open,
        "open_sets": _sets(explored.open_sets),
        "presumed": _presumed(explored),
        "ignored": explored.ignored,
        "out_of_bounds": explored.out_of_bounds,
        "unexplained": explored.unexplained,
        "unseen": explored.unseen,
        "killed": [
            {"faults": sorted(faults), "service": service, "words": named(words_of(faults), names)}
            for faults, service in explored.killed.items()
        ],
        "broken_teardowns": broken_teardowns,
        "evidence": (
            None
            if explored.certificate is None
            else class_evidence(test, explored.certificate, explored.records)
        ),
    }


def failure_of(document: Mapping[str, Any]) -> str:
    """Return why the test fails; empty where it passes."""
    if document["verdict"] == "tolerated":
        return ""
    lines = []
    if document["verdict"] == "inconclusive":
        lines.append(f"ldfi: inconclusive after {document['runs']} runs: {document['reason']}")
        lines += _hint(document)
    else:
        lines.append(f"ldfi: {headline(document)}")
    lines += [
        f"{KILLED}: {each['service']}, when {each['words']}; tried once, and no more"
        for each in document["killed"]
    ]
    for number, finding in enumerate(document["findings"], start=1):
        lines += ["", f"{number}. fails when {finding['words']}"]
        lines += _finding_lines(finding)
    lines += [f"note: {note}" for note in notes(document)]
    return "\n".join(lines)


def headline(document: Mapping[str, Any]) -> str:
    """Sum a test up: ``found 2 in 14 runs; trying all of size ≤ 2 takes 66``."""
    found = len(document["findings"]) or "nothing"
    if document["verdict"] == "broken":
        return f"fails without any fault: {document['reason']}"
    kept = f" and {document['kept']} kept from before" if document["kept"] else ""
    return (
        f"found {found} in {document['runs']} runs{kept}; "
        f"trying all of size ≤ {document['max_size']} takes {document['exhaustive']}"
    )


def notes(document: Mapping[str, Any]) -> list[str]:
    """Return further notes on the result."""
    once = [f"failed once, but not again, when {words_of(f)}" for f in document["refuted"]]
    never = [f"no run told anything about {words_of(f)}" for f in document["never_fired"]]
    left = [each for each in document["open_sets"] if each not in document["never_fired"]]
    found = once + never
    found += [f"left open: whether it hurts that {words_of(each)}" for each in left[:NAMED]]
    presumed = document.get("presumed", [])
    found += [
        f"not tried, and presumed to hurt: that {words_of(each['faults'])}, since it hurts that "
        f"{words_of(each['of'])} (each_kind=True tries it)"
        for each in presumed[:NAMED]
    ]
    if len(presumed) > NAMED:
        found.append(f"{len(presumed) - NAMED} more are presumed to hurt, and were not tried")
    found += [f"{why}: {_beyond(each)}" for each, why in document["out_of_bounds"].items()]
    if document["kept"]:
        found.append(
            f"{document['kept']} runs are kept from an earlier exploration of the same code, and"
            " were not made again"
        )
    if document["not_kept"]:
        found.append(f"no run was taken from before, or is kept from now: {document['not_kept']}")
    if document["unseen"] and document["unseen"] != document["reason"]:
        found.append(f"not all that it calls was seen: {document['unseen']}")
    if document["unexplained"]:
        found.append(f"failed {document['unexplained']} times although no fault had fired: flaky?")
    if document["broken_teardowns"]:
        found.append(f"teardown failed in {document['broken_teardowns']} runs with faults")
    return found


def _presumed(explored: Explored) -> list[Document]:
    """List what is presumed to hurt and was not tried, each with the failing set that is why."""
    if explored.certificate is None:
        return []
    found: list[Document] = explored.certificate["axioms"]["bounds"].get("presumed", [])
    return found


def _beyond(named: str) -> str:
    """Name the point of what is out of bounds: a fault, or a point."""
    kind, at, point = named.partition("@")
    return point if at and ">" not in kind else named


def words_of(faults: Iterable[str]) -> str:
    """Say a set of faults in words."""
    return " and ".join(_words(fault) for fault in sorted(faults))


def _words(fault: str) -> str:
    kind, _, point = fault.partition("@")
    if fault.startswith(DOWN):
        return f"{point} is down"
    if kind == "error" or outlasted(kind):
        return f"{point} {happens(kind)}"
    return f"{point} fails ({kind})"


def _hint(document: Mapping[str, Any]) -> list[str]:
    callers = {Point.parse(each.partition("@")[2]).caller for each in document["ignored"]}
    if callers - {service_name()}:
        return [
            f"{TO_SET}: FIT_KEYS has the keys that faults are",
            "signed with, and ldfi.fit.startup() (or fit/js) obeys them. What no injector reaches",
            "can be left out of the promise: protected=(...).",
        ]
    if document["unfired"]:
        return [
            "A point that is called once only (a cache, a token) or cannot fail: name it in the",
            "marker's protected=[...]. One that a fake answers: start the fake in the test or in a",
            "fixture of it, and see docs/pytest.md for the fakes through which faults fire.",
        ]
    if "hypotheses are left open" in document["reason"]:
        return ["Allow more time (time_limit), or fewer faults at once (max_size)."]
    if document["reason"] != NO_CALL:
        return []
    return [
        "Calls through httpx are seen by themselves, those of other libraries through",
        "OpenTelemetry's instrumentation of them. An application in another thread is seen only",
        "where OpenTelemetry's middleware takes the context from its requests.",
    ]


def named(text: str, names: Mapping[str, str]) -> str:
    """Put names in the place of addresses, however loopback is written in them."""
    known = {each: name for address, name in names.items() for each in _alike(address)}
    known |= names
    for address, name in sorted(known.items(), key=lambda pair: -len(pair[0])):
        text = re.sub(rf"(?<![\w.]){re.escape(address)}(?!\d)", name, text)
    return text


def _alike(address: str) -> list[str]:
    """List the other ways in which a caller on this machine may write an address of it."""
    host, _, port = address.rpartition(":")
    return [f"{each}:{port}" for each in _LOOPBACK] if host in _LOOPBACK else []


_LOOPBACK: Final = ("127.0.0.1", "localhost", "0.0.0.0", "::1", "[::1]")  # noqa: S104 - only read


def _learned(explored: Explored) -> dict[str, str]:
    """Learn the names of addresses from services that tell their own in their spans."""
    runs = [finding.run for finding in explored.findings]
    runs += [explored.good] if explored.good else []
    callees = {point: name for run in runs for point, name in run.lineage.callees.items()}
    peers = {Point.parse(point).peer: name for point, name in callees.items()}
    return {peer: name for peer, name in peers.items() if ":" in peer}


def _finding(
    finding: Finding, explored: Explored, keep: Keep, names: Mapping[str, str]
) -> Document:
    good = outline(explored.good.lineage.tree) if explored.good else ()
    bad = outline(finding.run.lineage.tree)
    scenario, problem = keep(finding, good, bad)
    return {
        "faults": sorted(finding.faults),
        "injected": [str(fault) for fault in finding.injected],
        "words": named(words_of(finding.faults), names),
        "error": finding.run.error,
        "confirmed": finding.confirmed,
        "scenario": scenario,
        "no_scenario": problem,
        "lineage": [_row(row, names) for row in side_by_side(good, bad)],
        "good": [call.to_json() for call in good],
        "bad": [call.to_json() for call in bad],
    }


def _row(row: Row, names: Mapping[str, str]) -> Document:
    point = named(row.point, names)
    return {"depth": row.depth, "point": point, "good": row.left, "bad": row.right}


def _finding_lines(finding: Mapping[str, Any]) -> list[str]:
    lines = [f"   {finding['error']}"] if finding["error"] else []
    if not finding["confirmed"]:
        lines.append("   (seen once; trying it again by itself said nothing)")
    rows = [("what differs", "good run", "failing run")]
    alike = 0
    for row in finding["lineage"]:
        if row["good"] == row["bad"]:
            alike += 1
        else:
            call = "  " * row["depth"] + row["point"]
            rows.append((call, row["good"] or "not called", row["bad"] or "not called"))
    wide = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines += [f"     {a:<{wide[0]}}  {b:<{wide[1]}}  {c}" for a, b, c in rows]
    if alike:
        lines.append(f"     ({alike} more as in the good run)")
    lines.append(f"   scenario: {finding['scenario'] or 'none, ' + finding['no_scenario']}")
    return lines


def _sets(sets: Iterable[frozenset[str]]) -> list[list[str]]:
    return sorted(sorted(each) for each in sets)
