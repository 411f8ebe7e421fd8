"""Templates of paths, learned by what varies: ``/users/kim`` and ``/users/lee`` are ``/users/*``.

What looks like an identifier is wildcarded by rule
(:func:`ldfi.fit.protocol.points.template_path`); names, slugs and short ids do not, and no rule
could tell them from words. Seen many at once, they give themselves away. In one place of a path,
behind the same words:

- a support that the requests of many different words share is *common* there;
- a support that one or two words have is *their own*;
- a word whose requests keep relying on something of its own is no value: ``/users/me`` stays;
- where anything is common, every other word is a value of a parameter, and stands as ``*``;
- words with digits or signs in them, which people hardly call a page, need be fewer to show it;
- where identifiers stand already (``*``), a word that may be one of them and relies on nothing that
  they do not is one, be there ever so few: of ten capitals drawn at random some have no digit.

So thirty resources under ``/api`` stay thirty, for each relies on something of its own. Dozens of
static pages become one template, and nothing is lost by it: they behave alike.

What is not seen: a name that is the only one in its place. Nobody could tell it from a word.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ldfi.fit.protocol.predicate import fits

MANY = 12
"""Different words in one place with the same support, from which on they are values."""

NUMBERED = 5
"""The same of words that may be identifiers, though no rule is sure; then others are, too."""

OWN = 3
"""Requests that rely on something of their own, without which a word is not held for one."""

FEW = 2
"""Words that may share a support which is their own. What more of them share, and yet not many, is
what happens to any of them now and then."""

RARELY = 0.1
"""Share of a value's requests that may rely on something of its own all the same."""

MOST_PATHS = 500
"""Paths of one group that are remembered, the newest; what is seen again is newest again."""

MOST_GROUPS = 2_000
LOOKS = 500
"""Requests of a group after which it is looked at again, at the latest."""

Group = tuple[str, str, int]
"""Where paths are compared: service, method, number of segments."""

Row = tuple[tuple[str, ...], Counter[frozenset[str]]]
Learned = tuple[tuple[str, ...], tuple[str, ...]]


def learned(paths: Mapping[str, Counter[frozenset[str]]]) -> dict[str, str]:
    """Learn the template of each of some paths of one length, given the supports of its requests.

    A path that holds no value is its own template.
    """
    rows = [(tuple(path.split("/")), counts) for path, counts in paths.items()]
    found = _below((), rows) if rows else ()
    return {"/".join(path): "/".join(template) for path, template in found}


def _below(before: tuple[str, ...], rows: Sequence[Row]) -> Iterator[Learned]:
    place = len(before)
    if place == len(rows[0][0]):
        yield from ((path, before) for path, _ in rows)
        return
    words: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        words[row[0][place]].append(row)
    values = _values(words)
    folded = [row for word in values for row in words[word]]
    if folded:
        yield from _below((*before, "*"), folded)
    for word, mine in words.items():
        if word not in values:
            yield from _below((*before, word), mine)


def _values(words: Mapping[str, Sequence[Row]]) -> frozenset[str]:
    """Name the words in one place that are values of a parameter."""
    if len(words) < NUMBERED and "*" not in words:
        return frozenset()
    counts: dict[str, Counter[frozenset[str]]] = {}
    for word, rows in words.items():
        counts[word] = Counter()
        for _, supports in rows:
            counts[word].update(supports)
    beside = {word for word in words if "*" in words and _is_beside(word, counts)}
    numbered = {word: each for word, each in counts.items() if _may_be_one(word)}
    many = NUMBERED if _common(numbered, NUMBERED) else MANY
    return frozenset(beside | _common(counts, many))


def _common(counts: Mapping[str, Counter[frozenset[str]]], many: int) -> set[str]:
    """Name the words that are values, where the requests of so many share a support."""
    spread = Counter(support for supports in counts.values() for support in supports)
    if max(spread.values(), default=0) < many:
        return set()
    return {word for word, each in counts.items() if _alike(each, spread)}


def _is_beside(word: str, counts: Mapping[str, Counter[frozenset[str]]]) -> bool:
    """Return whether a word beside identifiers is one of them."""
    return word == "*" or (_may_be_one(word) and counts[word].keys() <= counts["*"].keys())


def _may_be_one(word: str) -> bool:
    """Return whether a word may be an identifier, though no rule is sure."""
    return _UNLIKE_A_WORD.fullmatch(word) is not None and _NUMBERED_WORD.fullmatch(word) is None


_UNLIKE_A_WORD = re.compile(r"(?=.*[0-9]).{4,}|.*[:=].*|[A-Z]{8,}")
_NUMBERED_WORD = re.compile(r"[A-Za-z]?[a-z]+[0-9]{1,2}")
"""``oauth2``, ``Page1``."""


def _alike(supports: Counter[frozenset[str]], spread: Mapping[frozenset[str], int]) -> bool:
    own = sum(count for support, count in supports.items() if spread[support] <= FEW)
    return own < OWN or own <= RARELY * supports.total()


@dataclass(slots=True, eq=False)
class _Seen:
    """Paths of one group, and what was learned from them. ``looked``, ``due``: requests at
    the latest look, and at the next one."""

    paths: dict[str, Counter[frozenset[str]]] = field(default_factory=dict)
    templates: tuple[str, ...] = ()
    """The most specific first."""
    of_path: dict[str, str] = field(default_factory=dict)
    requests: int = 0
    looked: int = 0
    due: int = 2 * MANY

    def note(self, path: str, support: frozenset[str]) -> None:
        known = self.paths.pop(path, None)
        if known is None and len(self.paths) >= MOST_PATHS:
            del self.paths[next(iter(self.paths))]
        self.paths[path] = known or Counter()
        self.paths[path][support] += 1
        self.requests += 1

    def look(self) -> bool:
        """Learn from all that is remembered; tell whether that changes what is known."""
        self.looked = self.requests
        self.due = self.requests + min(self.requests, LOOKS)
        found = learned(self.paths)
        known = {each for each in self.templates if not self._refuted(each, found)}
        return self.know({*known, *_standing(found)})

    def _refuted(self, template: str, found: Mapping[str, str]) -> bool:
        """Return whether a word was held for one that is a value, by all that is remembered."""
        if not any(fits(each, template) for each in self.templates if each != template):
            return False
        mine = [path for path in self.paths if fits(template, path)]
        enough = sum(self.paths[path].total() for path in mine) >= 2 * MANY
        return enough and all(found[path] != template for path in mine)

    def know(self, templates: Iterable[str]) -> bool:
        ordered = tuple(sorted(set(templates), key=_specific_first))
        if ordered == self.templates:
            return False
        self.templates = ordered
        self.of_path.clear()
        return True

    def template(self, path: str) -> str:
        known = self.of_path.get(path)
        if known is None:
            known = next((each for each in self.templates if fits(each, path)), path)
            if len(self.of_path) >= 2 * MOST_PATHS:
                self.of_path.clear()
            self.of_path[path] = known
        return known


def _standing(found: Mapping[str, str]) -> Iterator[str]:
    """List templates that hold values, and the paths that one of these would take in."""
    wild = {template for path, template in found.items() if path != template}
    yield from wild
    for path, template in found.items():
        if path == template and any(fits(each, path) for each in wild):
            yield path


def _specific_first(template: str) -> tuple[int, list[bool], str]:
    segments = [segment == "*" for segment in template.split("/")]
    return sum(segments), segments, template


class Templates:
    """Templates of the paths of all services, as far as traffic has shown them."""

    def __init__(self) -> None:
        self._groups: dict[Group, _Seen] = {}

    def template(self, service: str, method: str, path: str) -> str:
        """Find the most specific template that a path fits; without one it is its own."""
        seen = self._groups.get(_group(service, method, path))
        return path if seen is None or not seen.templates else seen.template(path)

    def learn(self, service: str, method: str, path: str, support: frozenset[str]) -> bool:
        """Learn from a good, unperturbed request; return whether templates have changed."""
        seen = self._seen(_group(service, method, path))
        seen.note(path, support)
        return seen.requests >= seen.due and seen.look()

    def look(self, service: str, method: str, path: str) -> bool:
        """Learn from what is remembered of paths like this one, before it is relied upon."""
        seen = self._groups.get(_group(service, method, path))
        if seen is None or len(seen.paths) < NUMBERED:
            return False
        return seen.requests - seen.looked >= len(seen.paths) / 4 and seen.look()

    def declare(self, service: str, method: str, template: str) -> None:
        """Take a template for known: a class of it is."""
        seen = self._seen(_group(service, method, template))
        seen.know({*seen.templates, template})

    def _seen(self, group: Group) -> _Seen:
        seen = self._groups.get(group)
        if seen is None:
            if len(self._groups) >= MOST_GROUPS:
                del self._groups[next(iter(self._groups))]
            seen = self._groups[group] = _Seen()
        return seen


def _group(service: str, method: str, path: str) -> Group:
    return (service, method, path.count("/"))
