"""Everything known of a class under exact names, as a part of the page that is opened on demand."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from ldfi.analysis.report import ClassReport
from ldfi.analysis.words import counted, fault_in_words, faults_in_words


def exact(each: ClassReport, max_size: int) -> str:
    """Render one class."""
    parts = "".join([*_findings(each, max_size), *_failures(each), *_supports(each)])
    return (
        f"<details><summary>{escape(each.name)} <span class='muted'>at"
        f" {escape(each.service)}</span></summary>"
        f"<p class='muted'>{counted(each.traces, 'request')}: {each.good:,} good,"
        f" {each.failed:,} failed, {each.refused:,} refused; {each.consistency:.0%} of the good"
        f" ones in which nothing failed rely on the same points.</p>{parts}</details>"
    )


def _findings(each: ClassReport, max_size: int) -> Iterable[str]:
    singles = [fault_in_words(fault, each.callees) for fault in each.single_points]
    larger = [faults_in_words(h, each.callees) for h in each.hypotheses if len(h) > 1]
    if each.more_hypotheses:
        larger.append("and more")
    tolerated = [
        f"{faults_in_words(t.faults, each.callees)} ({t.requests:,} ×, {t.origin})"
        + (f", {', '.join(t.instead)} stood in" if t.instead else "")
        for t in each.tolerated
    ]
    yield _list("Single points of failure, as far as these traces know", singles)
    yield _list(f"Together they might hurt (at most {max_size})", larger)
    yield _list("Survived, as far as is known", tolerated)
    yield _list("Failed and yet succeeded", each.retried)


def _failures(each: ClassReport) -> Iterable[str]:
    lines = [
        f"{failure.requests:,} × {' and '.join(failure.suspects) or 'nothing in the trace'}"
        + ("; the root span says all was well" if failure.hidden else "")
        + (f"; told: {', '.join(failure.told)}" if failure.told else "")
        + f"; traces {', '.join(failure.traces)}"
        for failure in each.failures
    ]
    yield _list("Failed, and what the trace points at", lines)


def _supports(each: ClassReport) -> Iterable[str]:
    for support in each.supports:
        without = f" without {', '.join(support.failed)}" if support.failed else ""
        title = f"{counted(support.requests, 'request')} rely on{without}"
        yield _list(title, support.points or ("nothing",))


def _list(title: str, lines: Iterable[str]) -> str:
    items = "".join(f"<li><code>{escape(line)}</code></li>" for line in lines)
    return f"<h3>{escape(title)}</h3><ul class='plain'>{items}</ul>" if items else ""
