"""A word among many that behave alike is a value; one that behaves differently is a word."""

from __future__ import annotations

import base64
import random
import string
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.fit.protocol.points import template_path
from ldfi.fit.protocol.predicate import fits
from ldfi.lineage.templates import LOOKS, MANY, MOST_PATHS, Templates, learned

A, B, C = frozenset("ax"), frozenset("bx"), frozenset("cx")
NAMES = [f"{first}{second}" for first in ("an", "be", "ki", "lu", "mo") for second in "abdefg"]


def counts(*supports: frozenset[str], times: int = 1) -> Counter[frozenset[str]]:
    return Counter(dict.fromkeys(supports, times))


def test_many_that_behave_alike_are_a_parameter() -> None:
    found = learned({f"/users/{name}": counts(A) for name in NAMES})
    assert set(found.values()) == {"/users/*"}


def test_what_behaves_differently_is_not() -> None:
    users = {f"/users/{name}": counts(A) for name in NAMES}
    found = learned({**users, "/users/me": counts(B, times=20)})
    assert found["/users/me"] == "/users/me"
    assert found["/users/ana"] == "/users/*"


def test_one_odd_request_makes_no_word_of_a_name() -> None:
    users = {f"/users/{name}": counts(A) for name in NAMES}
    found = learned({**users, "/users/zoe": counts(B), "/users/lee": counts(A, B, times=2)})
    assert {found["/users/zoe"], found["/users/lee"]} == {"/users/*"}


def test_resources_that_rely_on_something_of_their_own_stay_apart() -> None:
    resources = {f"/api/{n}": counts(frozenset({"auth", n}), times=5) for n in NAMES}
    assert all(path == template for path, template in learned(resources).items())
    # Nor does a cache that is hit half of the time, after which all of them rely on the same
    for each in resources.values():
        each[frozenset({"auth"})] = 5
    assert all(path == template for path, template in learned(resources).items())


LETTERS = string.ascii_letters + string.digits


def drawn(rng: random.Random, among: str, size: int) -> str:
    return "".join(rng.choices(among, k=size))


ONE_OF_MANY: dict[str, Callable[[random.Random], str]] = {
    "eight": lambda rng: drawn(rng, LETTERS, 8),
    "six": lambda rng: drawn(rng, LETTERS, 6),
    "base32": lambda rng: base64.b32encode(rng.randbytes(5)).decode(),
    "base64": lambda rng: base64.urlsafe_b64encode(rng.randbytes(4)).decode(),
    "lower": lambda rng: drawn(rng, string.ascii_lowercase + string.digits, 8),
    "plus code": lambda rng: f"8FVC9G8F+{drawn(rng, '23456789CFGHJMPQRVWX', 2)}",
    "time": lambda rng: f"2026-11-{rng.randint(10, 28)}T{rng.randint(10, 23)}:30:00Z",
    "mac": lambda rng: ":".join(f"{rng.randrange(256):02x}" for _ in range(6)),
    "ipv6": lambda rng: f"fe80::{rng.randrange(16, 65_536):x}",
    "arn": lambda rng: f"arn:aws:s3:::{rng.choice(NAMES)}",
    "invoice": lambda rng: f"INV-2023-{rng.randrange(10_000):04}",
    "sku": lambda rng: f"SKU-{rng.choice('ABCD')}{rng.randrange(10, 100)}",
}


@pytest.mark.parametrize("form", ONE_OF_MANY)
def test_ids_that_behave_alike_are_a_parameter(form: str) -> None:
    many = MANY if form in {"six", "eight"} else 10  # of these a third, a quarter have no digit
    for seed in range(20):
        rng = random.Random(seed)
        ids = {template_path(f"/items/{ONE_OF_MANY[form](rng)}") for _ in range(many)}
        found = learned(dict.fromkeys(ids, counts(A, times=9)))
        assert set(found.values()) == {"/items/*"}, ids


def test_pages_beside_ids_stay_and_so_do_few_that_are_numbered() -> None:
    ids = {f"/items/{drawn(random.Random(n), LETTERS, 8)}7": counts(A, times=9) for n in range(10)}
    pages = {f"/items/{name}": counts(A | {name}, times=9) for name in ("favourite", "search")}
    found = learned({**ids, **pages})
    assert {found[page] for page in pages} == set(pages)
    few = {f"/{name}": counts(A, times=50) for name in ("oauth2", "v1", "v2", "page1", "page2")}
    assert all(path == template for path, template in learned(few).items())
    own = {f"/api/2d-{name}": counts(frozenset({"auth", name}), times=9) for name in NAMES}
    assert all(path == template for path, template in learned(own).items())


def test_several_places_that_vary_at_once() -> None:
    rng = random.Random(1)
    orders = [f"/users/{rng.choice(NAMES)}/orders/{rng.choice(NAMES)}-7" for _ in range(80)]
    notes = [f"/users/{rng.choice(NAMES)}/notes/{rng.choice(NAMES)}" for _ in range(80)]
    found = learned({**dict.fromkeys(orders, counts(A)), **dict.fromkeys(notes, counts(B))})
    assert set(found.values()) == {"/users/*/orders/*", "/users/*/notes/*"}


def test_a_few_words_are_words() -> None:
    few = {f"/pages/{name}": counts(A, times=50) for name in NAMES[: MANY - 1]}
    assert all(path == template for path, template in learned(few).items())


rows = st.dictionaries(
    st.lists(st.sampled_from("abcdefghijklmnopqrst"), min_size=2, max_size=2).map("/".join),
    st.dictionaries(st.sampled_from([A, B, C]), st.integers(1, 5), min_size=1).map(Counter),
    max_size=60,
)


@given(rows, st.randoms())
def test_templates_take_in_their_paths_and_do_not_depend_on_the_order(
    paths: dict[str, Counter[frozenset[str]]], rng: random.Random
) -> None:
    found = learned(paths)
    assert found.keys() == paths.keys()
    assert all(fits(template, path) for path, template in found.items())
    shuffled = list(paths.items())
    rng.shuffle(shuffled)
    assert learned(dict(shuffled)) == found


@given(rows)
def test_values_are_just_the_words_that_share_their_support_with_many(
    paths: dict[str, Counter[frozenset[str]]],
) -> None:
    # By brute force, in the first of two places
    words: dict[str, Counter[frozenset[str]]] = {}
    for path, supports in paths.items():
        words.setdefault(path[0], Counter()).update(supports)
    spread = {s: sum(s in each for each in words.values()) for s in (A, B, C)}
    for path, template in learned(paths).items():
        mine = words[path[0]]
        own = sum(count for support, count in mine.items() if spread[support] <= 2)
        value = max(spread.values()) >= MANY and (own < 3 or own <= 0.1 * mine.total())
        assert (template[0] == "*") is value


def test_a_name_that_was_held_for_a_word_is_a_value_once_more_is_known() -> None:
    templates = Templates()
    for name in NAMES:
        templates.learn("api", "GET", f"/users/{name}", A)
    # Given somebody whose requests hit some cache at first, as nobody else's did
    for _ in range(40):
        templates.learn("api", "GET", "/users/zoe", C)
    templates.look("api", "GET", "/users/zoe")
    assert templates.template("api", "GET", "/users/zoe") == "/users/zoe"
    # When everybody's do
    for name in NAMES:
        templates.learn("api", "GET", f"/users/{name}", C)
    templates.look("api", "GET", "/users/zoe")
    assert templates.template("api", "GET", "/users/zoe") == "/users/*"


def test_what_is_known_is_bounded_and_stays() -> None:
    templates = Templates()
    for number in range(3 * MOST_PATHS):
        templates.learn("api", "GET", f"/users/{number:x}z", A)
    assert templates.template("api", "GET", "/users/never-seen") == "/users/*"
    assert templates.template("api", "PUT", "/users/never-seen") == "/users/never-seen"
    assert templates.template("other", "GET", "/users/never-seen") == "/users/never-seen"
    (seen,) = templates._groups.values()
    assert len(seen.paths) == MOST_PATHS
    for _ in range(2 * LOOKS):
        templates.learn("api", "GET", "/users/me", B)
    assert templates.template("api", "GET", "/users/me") == "/users/me"
    assert templates.template("api", "GET", "/users/you") == "/users/*"


def test_what_may_be_drawn_by_lot_beside_identifiers_is_one_of_them() -> None:
    # Given identifiers that the rule knows, some that it does not, and words
    found = learned(
        {
            "/product/*": counts(A, times=40),
            **{f"/product/{each}": counts(A) for each in ("ABCDEFGHIJ", "dQw4w9WgXcQ", "k3mq7xw")},
            **{f"/product/{each}": counts(A) for each in ("search", "new", "Settings")},
            "/product/QWERTYUIOP": counts(B),  # it relies on something else
        }
    )
    values = {path for path, template in found.items() if template == "/product/*"}
    assert values == {f"/product/{each}" for each in ("*", "ABCDEFGHIJ", "dQw4w9WgXcQ", "k3mq7xw")}
