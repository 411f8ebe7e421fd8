"""Applications made up from a seed, of which nobody has seen a request: fifty kinds of them.

Every kind relies on points of its own. How a kind can be told when it arrives differs: by paths of
Falcor, operations of GraphQL, methods of gRPC and JSON-RPC, paths with names, slugs, short ids and
e-mail addresses in them, query parameters, the device's ``User-Agent``, a header, the baggage.
Words are made of syllables, so that no list of words can know them.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

KINDS = 50

AGENTS = {
    "phone": "Mozilla/5.0 (iPhone; CPU iPhone OS 18_{0} like Mac OS X) AppleWebKit/605.1.15"
    " (KHTML, like Gecko) Version/18.{0} Mobile/15E148 Safari/604.1",
    "tv": "Mozilla/5.0 (SMART-TV; Linux; Tizen {0}.0) AppleWebKit/537.36 (KHTML, like Gecko)"
    " SamsungBrowser/2.2 Chrome/63.0.3239.84 TV Safari/537.36",
    "desktop": "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:14{0}.0) Gecko/20100101"
    " Firefox/14{0}.0",
}


@dataclass(frozen=True)
class Asked:
    """One request as it arrives, and what its root span says of it."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    span: Mapping[str, str] = field(default_factory=dict)
    """Attributes beyond those of HTTP."""


@dataclass(frozen=True)
class Kind:
    """Requests that rely on the same points. ``ask`` makes one of them."""

    name: str
    points: frozenset[str]
    ask: Callable[[random.Random], Asked]


class Words:
    """Words nobody knows, each given once; and what names persons and things, all remembered."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._given: set[str] = set()
        self.personal: set[str] = set()
        self._people = [self.word(2) for _ in range(400)]

    def word(self, syllables: int = 3) -> str:
        """Make a word that was not given before."""
        while True:
            parts = (
                self._rng.choice("bdfgklmnprstvz") + self._rng.choice("aeiou")
                for _ in range(syllables)
            )
            made = "".join(parts)
            if made not in self._given:
                self._given.add(made)
                return made

    def person(self, rng: random.Random) -> str:
        """Name one of four hundred people, some far more often than others."""
        return self._noted(self._people[min(int(rng.paretovariate(0.5)), 400) - 1])

    def slug(self, rng: random.Random) -> str:
        """Make a slug of a few words."""
        return self._noted("-".join(rng.choice(self._people) for _ in range(rng.randint(2, 4))))

    def short(self, rng: random.Random) -> str:
        """Make an id of seven letters and digits."""
        return self._noted("".join(rng.choice("abcdefghjkmnpqrstuvwxyz23456789") for _ in range(7)))

    def number(self, rng: random.Random) -> str:
        """Make a short number with a letter before it, as orders have."""
        return self._noted(f"{rng.choice('ABC')}-{rng.randint(10, 99)}")

    def email(self, rng: random.Random) -> str:
        """Make somebody's address."""
        return self._noted(f"{self.person(rng)}@{rng.choice(self._people)}.example")

    def _noted(self, text: str) -> str:
        self.personal.add(text)
        return text


@dataclass(frozen=True)
class Application:
    """Fifty kinds of request, and the words that may never name a class."""

    kinds: tuple[Kind, ...]
    words: Words

    @classmethod
    def of(cls, seed: int) -> Application:
        """Make the application of a seed."""
        rng = random.Random(seed)
        words = Words(rng)
        makers = (_falcor, _graphql, _rest, _calls, _devices, _plans)
        kinds = tuple(kind for make in makers for kind in make(rng, words))
        assert len(kinds) == KINDS, len(kinds)
        return cls(kinds, words)

    def requests(self, count: int, seed: int) -> Iterator[tuple[Kind, Asked]]:
        """Ask so many times, some kinds ten times as often as others."""
        rng = random.Random(seed)
        weights = [1.0 + 9.0 * (place % 7) / 6 for place in range(len(self.kinds))]
        for kind in rng.choices(self.kinds, weights, k=count):
            yield kind, kind.ask(rng)


def _points(rng: random.Random, words: Words) -> frozenset[str]:
    calls = (f"edge>http:GET:{words.word()}/{words.word()}" for _ in range(rng.randint(2, 5)))
    return frozenset({"edge>http:GET:auth/session", *calls})


def _always(asked: Asked) -> Callable[[random.Random], Asked]:
    return lambda _: asked


def _falcor(rng: random.Random, words: Words) -> Iterator[Kind]:
    """Twelve sets of roots at one model; one root has people for keys."""
    roots = [words.word() for _ in range(8)]
    leaves = {root: [words.word(2) for _ in range(3)] for root in roots}
    points = {root: _points(rng, words) for root in roots}
    model = f"/{words.word()}.json"
    chosen: list[tuple[str, ...]] = [(root,) for root in roots]
    pairs: list[tuple[str, ...]] = [(one, other) for one in roots for other in roots if one < other]
    chosen += rng.sample(pairs, 4)
    for wanted in chosen:

        def ask(rng: random.Random, wanted: tuple[str, ...] = wanted) -> Asked:
            paths = [
                _falcor_path(rng, words, root, leaves[root], root == roots[0]) for root in wanted
            ]
            if rng.random() < 0.5:
                query = urlencode([("path", json.dumps(each)) for each in paths])
            else:
                query = urlencode({"paths": json.dumps(paths), "method": "get"})
            return Asked("GET", model, query)

        needs = frozenset().union(*(points[root] for root in wanted))
        yield Kind(f"falcor {'+'.join(wanted)}", needs, ask)


def _falcor_path(
    rng: random.Random, words: Words, root: str, leaves: list[str], people: bool
) -> list[object]:
    key: object = rng.choice(
        [rng.randint(1, 10**6), {"from": 0, "to": rng.randint(1, 50)}, [1, 2, rng.randint(3, 99)]]
    )
    if people:
        key = words.person(rng)
    leaf: object = rng.choice(leaves) if rng.random() < 0.5 else sorted(rng.sample(leaves, 2))
    return [root, key, leaf]


def _graphql(rng: random.Random, words: Words) -> Iterator[Kind]:
    """Eight operations over POST, four over GET, and two that only their hash tells."""
    path = f"/{words.word(2)}/graphql"
    for place in range(14):
        name = words.word().capitalize() + words.word(2).capitalize()
        kind = "mutation" if place % 4 == 3 and place < 8 else "query"
        text = f"{kind} {name}($id: ID!) {{ {words.word(2)}(id: $id) {{ id {words.word(2)} }} }}"
        sha = hashlib.sha256(text.encode()).hexdigest()
        known = {"graphql.operation.name": name, "graphql.operation.type": kind}

        def ask(
            rng: random.Random,
            place: int = place,
            name: str = name,
            text: str = text,
            sha: str = sha,
            known: Mapping[str, str] = known,
        ) -> Asked:
            variables = {"id": words.person(rng)}
            extensions = {"persistedQuery": {"version": 1, "sha256Hash": sha}}
            if place < 8:
                body = {"operationName": name, "query": text, "variables": variables}
                headers = {"content-type": "application/json"}
                return Asked("POST", path, "", headers, json.dumps(body).encode(), known)
            given = {"variables": json.dumps(variables), "extensions": json.dumps(extensions)}
            if place < 12:
                return Asked("GET", path, urlencode({"operationName": name, **given}), span=known)
            return Asked("GET", path, urlencode(given))

        yield Kind(f"graphql {name}", _points(rng, words), ask)


def _rest(rng: random.Random, words: Words) -> Iterator[Kind]:
    """Ten paths with somebody or something in them; two in which one word behaves differently."""
    makers: list[Callable[[random.Random], str]] = [
        words.person,
        words.slug,
        words.short,
        words.email,
        words.number,
    ]
    for place in range(8):
        shape = rng.sample(makers, 2)
        nouns = [words.word(), words.word(), words.word()]
        prefix = "/api/v2" if place % 2 else ""
        routed = place in {0, 1, 4}
        deep = place % 3 != 2

        def ask(
            rng: random.Random,
            nouns: list[str] = nouns,
            prefix: str = prefix,
            deep: bool = deep,
            shape: list[Callable[[random.Random], str]] = shape,
            routed: bool = routed,
        ) -> Asked:
            path, route = (
                f"{prefix}/{nouns[0]}/{quote(shape[0](rng))}",
                f"{prefix}/{nouns[0]}/{{a}}",
            )
            if deep:
                path += f"/{nouns[1]}/{quote(shape[1](rng))}"
                route += f"/{nouns[1]}/{{b}}"
            return Asked("GET", path, span={"http.route": route} if routed else {})

        yield Kind(f"rest {prefix}/{nouns[0]}", _points(rng, words), ask)
        if place in {2, 4}:
            path = f"{prefix}/{nouns[0]}/{words.word(2)}" + (f"/{nouns[1]}/all" if deep else "")
            span = {"http.route": path} if routed else {}
            own = Asked("GET", path, span=span)
            yield Kind(f"rest {path}", _points(rng, words), _always(own))
    yield from _views(rng, words)


def _views(rng: random.Random, words: Words) -> Iterator[Kind]:
    path, name = f"/{words.word()}", words.word(2)
    for value in (words.word(2), words.word(2), words.word(2)):

        def ask(rng: random.Random, value: str = value) -> Asked:
            return Asked("GET", path, urlencode({name: value, "q": words.slug(rng)}))

        yield Kind(f"view {value}", _points(rng, words), ask)


def _calls(rng: random.Random, words: Words) -> Iterator[Kind]:
    """Two methods of gRPC and two of JSON-RPC."""
    package = f"{words.word(2)}.{words.word().capitalize()}"
    for _ in range(2):
        method = words.word().capitalize()
        called = {"rpc.system": "grpc", "rpc.service": package, "rpc.method": method}
        asked = Asked("POST", f"/{package}/{method}", span=called)
        yield Kind(f"grpc {method}", _points(rng, words), _always(asked))
    for _ in range(2):
        method = f"{words.word(2)}.{words.word(2)}"
        known = {"rpc.system": "jsonrpc", "rpc.method": method}

        def ask(rng: random.Random, method: str = method, known: dict[str, str] = known) -> Asked:
            body = {
                "jsonrpc": "2.0",
                "id": rng.randint(1, 10**6),
                "method": method,
                "params": {"who": words.person(rng)},
            }
            headers = {"content-type": "application/json"}
            return Asked("POST", "/rpc", "", headers, json.dumps(body).encode(), known)

        yield Kind(f"jsonrpc {method}", _points(rng, words), ask)


def _devices(rng: random.Random, words: Words) -> Iterator[Kind]:
    path = f"/{words.word()}"
    for device, agent in AGENTS.items():

        def ask(rng: random.Random, agent: str = agent) -> Asked:
            return Asked("GET", path, "", {"user-agent": agent.format(rng.randint(0, 9))})

        yield Kind(f"device {device}", _points(rng, words), ask)


def _plans(rng: random.Random, words: Words) -> Iterator[Kind]:
    """Two plans by a header, two by the baggage."""
    for where in ("x-plan", "baggage"):
        path = f"/{words.word()}"
        for plan in (words.word(2), words.word(2)):
            given = plan if where == "x-plan" else f"plan={plan}"
            asked = Asked("GET", path, "", {where: given})
            yield Kind(f"plan {where} {plan}", _points(rng, words), _always(asked))
