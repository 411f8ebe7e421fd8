"""The text of an issue for a tracker: what hurts, the evidence, what would mend it, how to see it.

Names come from traffic, so whoever sends a request has a say in them. A name must neither call
somebody (``@ann``), nor point at something (``#12``), nor begin markup.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, get_args

from ldfi.analysis.phrases import said_fault, said_outcome
from ldfi.analysis.repairs.advice import Advice

Tracker = Literal["github", "gitlab", "jira"]
TRACKERS: Final[tuple[Tracker, ...]] = get_args(Tracker)

_APART: Final = "\u2060"
"""Word joiner: it is not seen, and ends what a tracker would take for a reference."""

_REFERENCES: Final[Mapping[Tracker, str]] = {"github": "@#", "gitlab": "@#!~%$&*^", "jira": "@"}
_MARKUP: Final[Mapping[Tracker, str]] = {
    "github": r"\`*_{}[]<>&#|~!$",
    "gitlab": r"\`*_{}[]<>&#|~!$",
    "jira": r"\*_{}[]()^+?-|!~#",
}
_LONGEST: Final = 230
"""Characters of a sentence in a title: trackers refuse one of more than 255."""

_ADDRESS: Final = re.compile(r"(?<=\w)://|(?<=www)\.(?=\w)")
"""What makes a tracker link text that nobody meant to be one."""


@dataclass(frozen=True, slots=True)
class Issue:
    """What a tracker is given. ``title`` is one line of plain text."""

    title: str
    body: str


@dataclass(frozen=True, slots=True)
class Subject:
    """A finding of which to write. ``url``: its page; empty where the service does not know its
    own address. ``found_at``: Unix seconds. ``share``: of all requests, those of its class; None
    where nobody asks for anything. ``command``: with which to see it."""

    id: str
    faults: Sequence[str]
    state: str
    url: str
    counts: Mapping[str, Any]
    callees: Mapping[str, str]
    advice: Advice
    found_at: float
    share: float | None
    command: str


@dataclass(frozen=True, slots=True)
class _Style:
    """How a tracker writes. ``heading``, ``item``, ``code``: of one line."""

    text: Callable[[str], str]
    heading: str
    item: str
    code: Callable[[str], str]
    block: str


def issue(finding: Subject, tracker: Tracker) -> Issue:
    """Write it."""
    style = _style(tracker)
    parts = [
        style.text(f"{finding.advice.sentence}."),
        style.text(said_outcome(finding.counts, "harmful")),
        "\n".join(style.item.format(fact) for fact in _facts(finding, style)),
        *_causes(finding, style),
        *_repairs(finding, style),
        _reproduce(finding, style),
    ]
    title = finding.advice.sentence
    for reference in _REFERENCES[tracker]:
        title = title.replace(reference, reference + _APART)
    if len(title) > _LONGEST:
        title = f"{title[:_LONGEST]}…"
    return Issue(f"{title} [{finding.id}]", "\n\n".join(part for part in parts if part) + "\n")


def _style(tracker: Tracker) -> _Style:
    def text(value: str) -> str:
        return _escaped(value, tracker)

    if tracker == "jira":
        return _Style(text, "h3. {}", "* {}", lambda t: f"{{{{{text(t)}}}}}",
                      "{{noformat}}\n{}\n{{noformat}}")  # fmt: skip
    return _Style(text, "### {}", "- {}", _span, "```sh\n{}\n```")


def _escaped(value: str, tracker: Tracker) -> str:
    """Make text of what may hold markup."""
    joined = _ADDRESS.sub(lambda found: found[0] + _APART, value)
    return "".join(
        ("\\" if each in _MARKUP[tracker] else "")
        + each
        + (_APART if each in _REFERENCES[tracker] else "")
        for each in joined
    )


def _span(name: str) -> str:
    """Write a name in backticks: more of them than it has in a row itself."""
    longest = max((len(run) for run in re.findall("`+", name)), default=0)
    fence = "`" * (longest + 1)
    space = " " if "`" in name else ""
    return f"{fence}{space}{name}{space}{fence}"


def _causes(finding: Subject, style: _Style) -> list[str]:
    together = len(finding.faults) > 1
    title = "Which failures together cause it" if together else "Which failure causes it"
    lines = [
        style.item.format(f"{style.text(said_fault(fault, finding.callees))}: {style.code(fault)}")
        for fault in finding.faults
    ]
    return [style.heading.format(title), "\n".join(lines)]


def _repairs(finding: Subject, style: _Style) -> list[str]:
    if not finding.advice.repairs:
        return []
    lines = []
    for each in finding.advice.repairs:
        where = f" {style.text('It is called at')} {style.code(each.code)}." if each.code else ""
        lines.append(style.item.format(f"{style.text(f'{each.said} {each.why}')}{where}"))
    note = style.text("Read from one failed request; whoever knows the code decides.")
    return [style.heading.format("What would mend it"), "\n".join(lines), note]


def _reproduce(finding: Subject, style: _Style) -> str:
    title = style.heading.format("How to see it")
    after = f"ldfi findings verify {finding.id}    # once the repair is deployed"
    block = style.block.format(f"{finding.command}\n{after}")
    return f"{title}\n\n{block}"


def _facts(finding: Subject, style: _Style) -> Iterator[str]:
    """Yield what whoever is assigned asks first: whose it is, whom it hurts, since when, where."""
    owners = " ".join(finding.advice.owners)
    yield f"Owner: {owners or 'nobody is known to own it'}"
    if finding.share is not None:
        yield f"Share of traffic: {100 * finding.share:.3g} % of all requests"
    yield f"First seen: {datetime.fromtimestamp(finding.found_at, UTC):%Y-%m-%d %H:%M} UTC"
    page = f": {finding.url}" if finding.url else ""
    yield f"Finding {style.code(finding.id)}, {style.text(finding.state)}{page}"
