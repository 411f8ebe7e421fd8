"""What somebody looks for, in the words that people say, and what is called so. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from ldfi.analysis.phrases import said_shortly
from ldfi.analysis.repairs.called import BY_THEIR_NAMES, Called
from ldfi.analysis.words import happens
from ldfi.dashboards.links import to_campaign, to_class, to_experiment, to_finding
from ldfi.dashboards.render import PLACES
from ldfi.experiments.cluster.tokens import Caller, Role
from ldfi.experiments.store.search import Named, Term
from ldfi.fit.protocol.kinds import FAMILIES

SHOWN: Final = 6
"""Hits of one kind that are shown."""

MOST_WORDS: Final = 12
MOST_POINTS: Final = 20
"""Points that a word stands for, because they reach something of that name."""

ACTIONS: Final[tuple[tuple[str, str, Role, str], ...]] = (
    ("Was it us?", "/was-it-us", "viewer", "incident outage"),
    ("New campaign", "/campaigns/new", "operator", "start try experiment"),
    ("Halt everything", "/halt", "operator", "stop kill switch emergency"),
)
"""What can be done from anywhere: where, the role that it takes, and what else people call it."""

TOKENS: Final = ("Tokens", "/tokens", "")
"""A page within no place, for admins."""

_AROUND: Final = "()“”\"',;:.?"
_SENTENCE: Final = frozenset(
    (
        *(
            "a",
            "all",
            "and",
            "both",
            "call",
            "do",
            "does",
            "fail",
            "fails",
            "for",
            "in",
            "is",
            "its",
        ),
        *("look-up", "lost", "message", "more", "not", "of", "often", "query", "the", "to"),
        *("when", "with"),
    )
)
"""Words that only make a sentence of names: whoever types one as it stands on a page means the
names."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One that was found. ``state``: a chip beside it; ``note`` and ``at``: what tells it from
    others of its name."""

    title: str
    to: str
    note: str = ""
    state: str = ""
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Hits of one kind. ``more``: there are others, which more words would find."""

    name: str
    hits: list[Hit]
    more: bool = False


def words_of(text: str, callees: Mapping[str, str], called: Called = BY_THEIR_NAMES) -> list[Term]:
    """Take apart what somebody types. ``callees``: what points reach."""
    typed = [_bare(each) for each in text.casefold().split()]
    names = [each for each in typed if each and each not in _SENTENCE]
    chosen = dict.fromkeys(names or filter(None, typed))
    return [
        Term(each, _kinds(each), _points(each, callees), _classes(each, called))
        for each in [*chosen][:MOST_WORDS]
    ]


def groups(
    words: Sequence[Term],
    caller: Caller,
    services: Iterable[str],
    classes: Iterable[str],
    stored: Iterable[Named],
    callees: Mapping[str, str],
    called: Called = BY_THEIR_NAMES,
) -> list[Group]:
    """Tell what was found, kind by kind; without a word, the pages that there are."""
    rows = list(stored)
    of = {what: [each for each in rows if each.what == what] for what in _TOLD}
    told = [
        Group("Actions", _actions(words, caller)),
        Group("Pages", _pages(words, caller)),
        _group("Services", [_service(name) for name in _having(words, services)]),
        _group("Request classes", [_class(n, called) for n in _having(words, classes, called)]),
        *(
            _group(name, [_hit(each, callees, called) for each in of[what]])
            for what, name in _TOLD.items()
        ),
    ]
    return [each for each in told if each.hits]


_TOLD: Final = {"finding": "Weaknesses", "campaign": "Campaigns", "experiment": "Experiments"}


def _bare(word: str) -> str:
    """Strip what a sentence puts around a name: ``(GET``, ``api's``."""
    return word.strip(_AROUND).removesuffix("'s").removesuffix("’s")


def _kinds(word: str) -> tuple[str, ...]:
    return tuple(kind for kind, said in _SAID.items() if any(w.startswith(word) for w in said))


def _said(kind: str) -> frozenset[str]:
    """List the words in which a kind of fault is said; of its argument nobody knows here."""
    said = f"{happens(f'{kind}:…')} {said_shortly([f'{kind}:…@x'])} {said_shortly([f'{kind}@x'])}"
    return frozenset({_bare(each) for each in said.casefold().split()} - _SENTENCE - {"x", "…"})


_SAID: Final = {kind: _said(kind) for kind in (*FAMILIES, "down")}


def _points(word: str, callees: Mapping[str, str]) -> tuple[str, ...]:
    reaching = (
        point
        for point, callee in callees.items()
        if word in callee.casefold() and word not in point.casefold()
    )
    return tuple(sorted(reaching)[:MOST_POINTS])


def _classes(word: str, called: Called) -> tuple[str, ...]:
    """List the request classes of which people say the word: their name, or what is lost."""
    said = (*called.names.items(), *called.losses.items())
    return tuple(dict.fromkeys(name for name, words in said if word in words.casefold()))


def _having(
    words: Sequence[Term], names: Iterable[str], called: Called = BY_THEIR_NAMES
) -> list[str]:
    """Choose the names in which every word stands, or for which people say it; those that begin
    with the first come first."""
    if not words:
        return []
    found = [
        name
        for name in names
        if all(each.text in name.casefold() or name in each.classes for each in words)
    ]
    first = words[0].text
    found.sort(
        key=lambda name: (not called.name(name).casefold().startswith(first), len(name), name)
    )
    return found[: SHOWN + 1]


def _actions(words: Sequence[Term], caller: Caller) -> list[Hit]:
    return [
        Hit(name, to)
        for name, to, role, also in ACTIONS
        if caller.may(role) and all(each.text in f"{name} {also}".casefold() for each in words)
    ]


def _pages(words: Sequence[Term], caller: Caller) -> list[Hit]:
    listed = [(name, to, place) for place, pages in PLACES for to, name in pages]
    listed += [TOKENS] if caller.may("admin") else []
    return [
        Hit(name, to, place if place != name else "")
        for name, to, place in listed
        if all(each.text in f"{name} {place}".casefold() for each in words)
    ]


def _service(name: str) -> Hit:
    return Hit(name, f"/map?{urlencode({'down': name})}", "what if it goes down")


def _class(name: str, called: Called) -> Hit:
    said = called.name(name)
    return Hit(said, to_class(name), name if said != name else "")


def _hit(row: Named, callees: Mapping[str, str], called: Called) -> Hit:
    if row.what == "campaign":
        return Hit(row.name or row.id, to_campaign(row.id), row.id, row.state, row.at)
    to = to_finding(row.id) if row.what == "finding" else to_experiment(row.id)
    said = f"{called.name(row.name)}: {said_shortly(row.faults, _of(row, callees))}"
    return Hit(said, to, row.id, row.state, row.at)


def _of(row: Named, callees: Mapping[str, str]) -> dict[str, str]:
    """Choose what these points reach."""
    points = (fault.partition("@")[2] for fault in row.faults)
    return {point: callees[point] for point in points if point in callees}


def _group(name: str, hits: list[Hit]) -> Group:
    return Group(name, hits[:SHOWN], len(hits) > SHOWN)
