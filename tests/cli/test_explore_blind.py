"""``ldfi explore`` of programs of which one needed call is lost to sight, each really run."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from ldfi.cli.ports import free_port
from ldfi.explore.external.environment import variables
from ldfi.explore.external.services import Service, Services
from tests.cli.test_explore import KEYS, SHOP, TEST, explore

BLIND = (sys.executable, "-m", "tests.explore.external.blind")
LOST = [
    *("pool", "map", "thread", "timer", "worker", "context", "http.client", "urllib", "socket"),
    *("child", "adapter"),
]

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


def explored(folder: Path, way: Mapping[str, str], *options: str) -> dict[str, object]:
    receiving = f"127.0.0.1:{free_port()}"
    block = variables(KEYS, f"http://{receiving}")
    services = Services(block, folder)
    store = Service("store", (*SHOP, "store"), free_port(), "/health")
    page = Service("page", BLIND, free_port(), "/health", {"STORE": store.url, **way})
    try:
        services.start(store, page)
        told = block | {"LDFI_RECEIVE": receiving}
        done = explore(*("--target", page.url, "--json", *options, "--", *TEST), environment=told)
    finally:
        services.close()
    document: dict[str, object] = json.loads(done.stdout)
    return document


@pytest.mark.parametrize("way", LOST)
def test_a_program_that_loses_a_needed_call_never_passes(way: str, tmp_path: Path) -> None:
    document = explored(tmp_path, {"WAY": way})
    assert document["verdict"] == "inconclusive", document
    assert "cannot see" in str(document["reason"])
    assert "store" in str(document["reason"])


@pytest.mark.parametrize("beside", [{}, {"POLLS": "1"}], ids=["alone", "beside a poller"])
def test_a_program_that_loses_nothing_is_not_blamed(
    beside: Mapping[str, str], tmp_path: Path
) -> None:
    found = explored(tmp_path, {"WAY": "seen", **beside})
    assert (found["verdict"], found["unseen"]) == ("harmful", ""), found
    fine = explored(tmp_path, {"WAY": "seen", **beside}, "--protected", "*price*")
    assert (fine["verdict"], fine["unseen"]) == ("tolerated", ""), fine
