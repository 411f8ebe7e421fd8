"""The example project: what is planted in it is found, and nothing else; repaired, it passes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.examples.storefront_runs import EXAMPLE, SHARE, explored, found

pytestmark = pytest.mark.long

PLANTED = {
    "test_a_product_can_be_bought_from_its_page": [
        {"GET:inventory/stock/*"},  # nothing stands in
        {"GET:pricing/prices/*", "GET:pricecache/prices/*"},  # one fallback, and no last resort
        {"GET:recommender/similar/*", "GET:recommender/bestsellers"},  # a fallback of the same host
    ],
    "test_who_has_paid_is_told_so": [
        {"POST:loyalty/points/*"},
        {"GET:tax/carts/*", "GET:taxtable/default"},
        {"POST:mail/confirmations/*", "POST:outbox/messages/*"},
    ],
    "test_a_search_finds_something": [],
}


def by_name(tests: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {each["test"].rpartition("::")[2]: each for each in tests}


@pytest.fixture(scope="module")
def tests() -> dict[str, dict[str, Any]]:
    return by_name(explored(EXAMPLE))


def test_all_that_is_planted_is_found_and_nothing_else(tests: dict[str, dict[str, Any]]) -> None:
    assert {name: found(test) for name, test in tests.items()} == {
        name: {frozenset(f"refused@app>http:{point}" for point in planted) for planted in sets}
        for name, sets in PLANTED.items()
    }


def test_trying_everything_finds_the_same_in_three_times_as_many_runs(
    tests: dict[str, dict[str, Any]],
) -> None:
    every = by_name(explored(EXAMPLE, "-p", "tests.examples.storefront_runs"))

    assert {name: found(test) for name, test in every.items()} == {
        name: found(test) for name, test in tests.items()
    }
    assert {name: test["runs"] for name, test in every.items()} == {
        name: test["exhaustive"] for name, test in tests.items()
    }
    runs = sum(test["runs"] for test in tests.values())
    assert runs <= SHARE * sum(test["runs"] for test in every.values())


def test_repaired_it_passes(tmp_path: Path) -> None:
    project = tmp_path / "storefront"
    shutil.copytree(EXAMPLE, project)
    for module in (EXAMPLE / "repaired").glob("*.py"):
        shutil.copy(module, project / "storefront")

    tests = explored(project)

    assert [test["verdict"] for test in tests] == ["tolerated"] * 3
    assert sum(test["runs"] for test in tests) <= SHARE * sum(test["exhaustive"] for test in tests)
