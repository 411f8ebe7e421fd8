"""The planted weaknesses: well-formed, and exactly what fails among calls between services.

The real processes, delays in seconds and faults inside a process are benchmarks/demo_oracle.py's.
"""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from ldfi.demo.devices.judge import judge
from ldfi.demo.services import NAMES
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.points import Point

ROOT = Path(__file__).parents[2] / "ldfi" / "demo"
WEAKNESSES: list[dict[str, Any]] = json.loads((ROOT / "weaknesses.json").read_text())
REQUESTS = {"boot": "/boot", "play": "/play/17", "search": "/search?q=silent+harbor"}
PLANTED = {
    "boot": [
        {("error", "api", "layout")},
        {("error", "api", "playlist"), ("error", "api", "playlist-fallback")},
        {("error", "bookmarks", "recordsdb"), ("error", "history", "recordsdb")},
    ],
    "play": [{("error", "api", "license")}],
    "search": [{("delay", "api", "spelling")}],
}


def test_there_are_five_of_four_shapes() -> None:
    faults = [entry["faults"] for entry in WEAKNESSES]
    assert len(WEAKNESSES) == 5
    assert sorted(map(len, faults)) == [1, 1, 1, 1, 2]
    assert sorted(f.partition("@")[0] for fs in faults for f in fs) == [
        "delay", "down", "refused", "refused", "refused", "refused",
    ]  # fmt: skip


@pytest.mark.parametrize("entry", WEAKNESSES, ids=lambda entry: str(entry["name"]))
def test_each_is_written_in_words_that_mean_something(entry: dict[str, Any]) -> None:
    assert entry.keys() == {"class", "name", "faults", "why"}
    assert entry["class"] in {"GET /boot", "GET /play/*", "GET /search"}
    for text in entry["faults"]:
        kind, _, rest = text.partition("@")
        if kind == "down":
            assert rest in NAMES
        else:
            point = Point.parse(Fault.parse(text).point)
            assert str(point) == rest
            assert {point.caller, point.peer} <= set(NAMES)


@pytest.mark.parametrize("entry", WEAKNESSES, ids=lambda entry: str(entry["name"]))
def test_each_can_be_repaired_by_its_name(entry: dict[str, Any]) -> None:
    code = "".join(path.read_text() for path in (ROOT / "services" / "api").glob("*.py"))
    assert f'repaired("{entry["name"]}")' in code


def test_nothing_in_the_demo_reads_them() -> None:
    code = "".join(path.read_text() for path in ROOT.rglob("*.py"))
    assert "weaknesses.json" not in code


@pytest.mark.parametrize("kind", REQUESTS)
def test_of_all_faults_and_pairs_between_services_only_the_planted_ones_hurt(
    kind: str, town: Any
) -> None:
    # Given every call that is made when nothing fails, or when everything planted does
    edges = set()
    for failing in ((), {("api", "playlist"), ("api", "recommend"), ("api", "search")}):
        town.get("http://api" + REQUESTS[kind], failing)
        edges |= set(town.calls)
    faults = [(fault, *edge) for edge in sorted(edges) for fault in ("error", "delay")]

    # When each of them and each pair fails
    hurtful: list[set[tuple[str, str, str]]] = []
    for size in (1, 2):
        for tried in map(set, combinations(faults, size)):
            if _hurts(town, kind, tried) and not any(known <= tried for known in hurtful):
                hurtful.append(tried)

    # Then, a delay with a timeout being as good as an error, only the planted sets remain
    errors = [{("error", *fault[1:]) for fault in tried} for tried in hurtful]
    written = [
        tried if as_errors not in hurtful else as_errors
        for tried, as_errors in zip(hurtful, errors, strict=True)
    ]
    assert sorted(map(sorted, _distinct(written))) == sorted(map(sorted, PLANTED[kind]))


@pytest.mark.parametrize("kind", REQUESTS)
@pytest.mark.parametrize("spared", [*range(3)])
def test_everything_at_once_is_tolerated_as_long_as_no_planted_set_is_whole(
    kind: str, spared: int, town: Any
) -> None:
    town.get("http://api" + REQUESTS[kind], {("api", "playlist"), ("api", "search")})
    faults = {("error", *edge) for edge in town.calls} | {("error", "api", "trending")}
    for planted in PLANTED[kind]:
        faults.discard(sorted(planted)[spared % len(planted)])
    assert not _hurts(town, kind, faults)


def _hurts(town: Any, kind: str, faults: set[tuple[str, str, str]]) -> bool:
    failing = {fault[1:] for fault in faults if fault[0] == "error"}
    slow = {fault[1:] for fault in faults if fault[0] == "delay"}
    try:
        response = town.get("http://api" + REQUESTS[kind], failing, slow)
    except BaseException as error:
        if type(error).__name__ == "Hangs":
            return True
        raise
    return judge(kind, response.status_code, response.content) is not None


def _distinct(sets: list[set[Any]]) -> list[set[Any]]:
    return [s for place, s in enumerate(sets) if s not in sets[:place]]
