"""The petstore under one campaign: what is found is what is planted, breaker closed and open.

What the program says of its findings is tested here; the campaign itself takes minutes, and runs
where ``LDFI_PETSTORE`` is ``quick`` or ``full`` (which also kills).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.examples.loading import loaded

pytestmark = pytest.mark.long

ASKED = os.environ.get("LDFI_PETSTORE", "")
EXAMPLE = Path(__file__).parents[2] / "examples" / "petstore"


@pytest.fixture(scope="module")
def campaign() -> Iterator[ModuleType]:
    """The program of ``make petstore``, with what it imports from beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLE))
        patch.setattr(sys, "path", [*sys.path, str(EXAMPLE.parent)])
        for name in ("petstore", "visitors", "deaths", "together"):
            patch.delitem(sys.modules, name, raising=False)
        yield loaded(EXAMPLE / "campaign.py")


def as_planted(campaign: ModuleType) -> list[Any]:
    """Deaths in which just that fails which the planted file names."""
    planted = campaign.petstore.PLANTED

    def fails(table: str, service: str) -> frozenset[str]:
        return frozenset(kind for kind, services in planted[table].items() if service in services)

    deaths = []
    for service in campaign.petstore.LISTENING[1:]:
        closed = fails("fails with the breaker closed", service)
        kept = closed - fails("survived while the cache has it", service)
        opened = fails("fails with the breaker open", service)
        opens = fails("survived, and opens the breaker for others", service)
        deaths.append(campaign.Death(service, kept, closed, opened if opens else None))
    return deaths


def test_what_is_planted_bears_itself_out(campaign: ModuleType) -> None:
    planted = campaign.petstore.PLANTED
    own = campaign.pairs(planted["fails with the breaker closed"])
    others = campaign.pairs(planted["survived, and opens the breaker for others"])

    both = campaign.pairs(planted["fails, and opens the breaker for others as well"])
    assert both <= own

    for seen_first in (others, others | both):
        wrong = campaign.contradicted(own, seen_first, as_planted(campaign))

        assert not any(wrong.values()), wrong


def test_what_killing_does_not_bear_out_is_told(campaign: ModuleType) -> None:
    own = {("GET /pets/*", "prices")}
    others = {("POST /orders", "prices"), ("GET /pets/*", "catalogue")}
    catalogue, orders, prices, postgres = as_planted(campaign)
    never = campaign.Death(prices.service, prices.kept, prices.closed, None)

    wrong = campaign.contradicted(own, others, [catalogue, orders, never, postgres])

    assert wrong["own"] == [("GET /pets/*", "prices")]
    assert wrong["others"] == [("GET /pets/*", "catalogue"), ("POST /orders", "prices")]
    assert wrong["open"] == [("POST /orders", "prices")]
    assert wrong["closed"] == wrong["kept"] == []


@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.skipif(ASKED not in {"quick", "full"}, reason="LDFI_PETSTORE=quick or full runs it")
def test_what_is_found_is_what_is_planted(campaign: ModuleType) -> None:
    missing = campaign.petstore.missing()
    if missing and not os.environ.get("CI"):
        pytest.skip(missing)
    words = [sys.executable, "campaign.py", "--json", *(["--quick"] if ASKED == "quick" else [])]

    done = subprocess.run(words, cwd=EXAMPLE, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["missed"] == told["not planted"] == []
    assert len(told["found"]) + len(told["interference"]) == 7
