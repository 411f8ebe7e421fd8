"""Requests enter where their templates and their calls say, and nobody's name is a class's name."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace
from typing import Any

from ldfi.experiments.domain.traffic.catalogue import Catalogue, KnownClass
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.fit.protocol.features import request_features
from ldfi.fit.protocol.predicate import Condition
from ldfi.lineage.class_assignment import MOST_CALLS
from ldfi.testing.spans import lineage, span
from tests.kit.observations import observation

_numbers = itertools.count(1)
NAMES = [f"{a}{b}{c}" for a in ("an", "be", "ki") for b in "nlrst" for c in ("a", "o", "ey")]


def request(points: str, path: str = "/t", **fields: Any) -> Observation:
    calls = [span(point, "root", point=point) for point in points]
    asked = span("root", kind="server", at=(0, 9), method="GET", path=path, **fields)
    number = next(_numbers)
    return observation(
        replace(lineage(asked, *calls), start=number), number=number, device=f"d{number}"
    )


def fed(*requests: Observation, into: Catalogue | None = None) -> tuple[Catalogue, set[str]]:
    """A catalogue that has seen requests, and every name that a class of it ever had."""
    catalogue, names = into or Catalogue(), set[str]()
    for at, each in enumerate(requests):
        catalogue.observe(each, float(at))
        names |= {change.known.name for change in catalogue.changes()}
    return catalogue, names


def users(count: int, seed: int = 1) -> list[Observation]:
    """Requests about people, one of whom asks far more often than the others."""
    rng = random.Random(seed)
    often = [NAMES[0], *NAMES, *NAMES]
    return [
        request("ab", f"/users/{rng.choice(often)}/orders/A-{rng.randint(1, 99)}")
        for _ in range(count)
    ]


def at_the_edge(known: KnownClass, path: str) -> bool:
    return known.rule.holds(request_features("GET", path))


def test_people_are_no_classes() -> None:
    catalogue, names = fed(*users(600))
    assert names == {"GET /users/*/orders/*"}
    (known,) = catalogue.classes.values()
    assert known.traffic.usual_support() == {"a", "b"}
    assert known.consistency == 1
    assert at_the_edge(known, "/users/somebody/orders/new")
    assert not at_the_edge(known, "/users/somebody/notes/new")


def test_a_word_that_behaves_differently_has_a_class_of_its_own_and_is_left_to_it() -> None:
    rng = random.Random(2)
    me = [request("abc", "/users/me") for _ in range(200)]
    others = [request("ab", f"/users/{name}") for name in NAMES * 8]
    mixed = rng.sample(me + others, len(me) + len(others))
    catalogue, _ = fed(*mixed)
    assert {n: k.traffic.usual_support() for n, k in catalogue.classes.items()} == {
        "GET /users/me": {"a", "b", "c"},
        "GET /users/*": {"a", "b"},
    }
    everybody = catalogue.classes["GET /users/*"]
    assert everybody.apart == (Condition("path", "/users/me", negated=True),)
    assert at_the_edge(everybody, "/users/kim")
    assert not at_the_edge(everybody, "/users/me")
    # And when that class expires, its requests are the others' again
    catalogue._remove(
        catalogue._entries["api", None, "GET", "/users/me", None, None, None],
        catalogue.classes["GET /users/me"],
    )
    assert at_the_edge(everybody, "/users/me")


def test_what_was_learned_is_read_back() -> None:
    me = [request("abc", "/users/me") for _ in range(100)]
    catalogue, _ = fed(*me, *(request("ab", f"/users/{name}") for name in NAMES * 4), *me)
    kept = json.loads(json.dumps(catalogue.to_json()))
    for order in (kept, kept[::-1]):
        again = Catalogue.from_json(order)
        assert {n: k.rule for n, k in again.classes.items()} == {
            n: k.rule for n, k in catalogue.classes.items()
        }
        assert fed(request("ab", "/users/nobody-yet"), into=again)[1] == set()
        known = again.class_of(request_features("GET", "/users/nobody-yet"), "api")
        assert known is again.classes["GET /users/*"]
        assert again.class_of(request_features("GET", "/users/me"), "api") is not known


def test_the_route_that_a_service_tells_of_is_the_template() -> None:
    route = "/users/{name}/orders/{order}"
    runs = [request("ab", f"/users/{name}/orders/A-1", route=route) for name in NAMES[:4] * 10]
    catalogue, names = fed(*runs)
    assert names == {"GET /users/*/orders/*"}
    (known,) = catalogue.classes.values()
    assert at_the_edge(known, "/users/kim/orders/A-1")


def test_a_class_of_ids_takes_in_names_once_its_route_does() -> None:
    numbers = [request("ab", f"/users/{n}", route="/users/{user}") for n in range(100, 130)]
    catalogue, _ = fed(*numbers)
    (known,) = catalogue.classes.values()
    assert not at_the_edge(known, "/users/kim")
    fed(*(request("ab", f"/users/{n}", route="/users/{user}") for n in NAMES * 12), into=catalogue)
    (known,) = catalogue.classes.values()
    assert known.name == "GET /users/*"
    assert at_the_edge(known, "/users/kim")
    assert at_the_edge(known, "/users/17")


def test_the_route_of_a_mounted_application_is_the_end_of_the_path() -> None:
    run = request("a", "/shop/items/blue-hat", route="/items/{slug}").lineage
    assert run.features["path"] == "/shop/items/*"
    # And a route that the path does not fit is none of it
    assert request("a", "/shop", route="/items/{slug}").lineage.features["path"] == "/shop"


def test_operations_at_one_address_are_classes() -> None:
    runs = [
        request(points, "/graphql", graphql_name=name)
        for name, points in (("Home", "ab"), ("Search", "cd"), ("Rate", "e"))
        for _ in range(25)
    ]
    catalogue, _ = fed(*runs)
    assert {n: k.traffic.usual_support() for n, k in catalogue.classes.items()} == {
        "GET /graphql graphql.operation is Home": {"a", "b"},
        "GET /graphql graphql.operation is Search": {"c", "d"},
        "GET /graphql graphql.operation is Rate": {"e"},
    }


def test_ever_more_names_at_one_address_are_put_together() -> None:
    runs = [
        request("ab", "/graphql", graphql_name=f"Q{_letters(n)}") for n in range(3 * MOST_CALLS)
    ]
    catalogue, names = fed(*runs, *runs[-50:])
    assert "GET /graphql" in names
    assert len(catalogue._entries) <= MOST_CALLS + 1
    (rest,) = (known for name, known in catalogue.classes.items() if name == "GET /graphql")
    # An edge leaves out what has a class of its own
    fed(*(request("ab", "/graphql", graphql_name="Qaaa") for _ in range(25)), into=catalogue)
    assert Condition("graphql.operation", "Qaaa", negated=True) in rest.apart


def _letters(number: int) -> str:
    return "".join("abcdefghij"[int(digit)] for digit in f"{number:03}")
