"""The picture of the services: everybody once, callers above, nothing on top of anything."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from ldfi.analysis.picture import (
    BOX,
    HEIGHT,
    LETTERS,
    MEANINGS,
    WIDTH,
    picture,
    places,
)
from ldfi.analysis.summary import ServiceCall, ServiceLine, Summary

CALLS = st.sets(
    st.tuples(st.integers(0, 12), st.integers(0, 12)).filter(lambda pair: pair[0] != pair[1]),
    min_size=1,
    max_size=30,
).map(lambda pairs: tuple(ServiceCall(f"s{a}", f"s{b}", 1, 0) for a, b in sorted(pairs)))


@given(CALLS)
def test_each_service_has_a_place_of_its_own_on_a_phone(calls: tuple[ServiceCall, ...]) -> None:
    placed = places(calls)
    assert placed.keys() == {name for call in calls for name in (call.above, call.below)}
    assert all(place.x >= 0 and place.x + BOX <= WIDTH for place in placed.values())
    for one, other in combinations(placed.values(), 2):
        assert abs(one.x - other.x) >= BOX or abs(one.y - other.y) >= HEIGHT


@given(CALLS)
def test_callers_stand_above_what_they_call(calls: tuple[ServiceCall, ...]) -> None:
    placed = places(calls)
    graph: nx.DiGraph[Any] = nx.DiGraph((call.above, call.below) for call in calls)
    for call in calls:
        if not nx.has_path(graph, call.below, call.above):  # no circle
            assert placed[call.above].y + HEIGHT < placed[call.below].y


def test_a_service_is_marked_by_more_than_its_colour() -> None:
    calls = tuple(ServiceCall("api", name, 1, 0) for name in MEANINGS)
    services = (
        ServiceLine("api", "untried"),
        *(ServiceLine(standing, standing) for standing in MEANINGS),
    )
    summary = Summary("", "", "", (), (), (), 0, (), (), 0, services, calls)
    drawn = ElementTree.fromstring(picture(summary))  # noqa: S314  it is our own
    for group in drawn.findall("g"):
        name = (group.findtext("title") or "").partition(":")[0]
        standing = group.attrib["class"]
        assert group.findtext("text") == MEANINGS[standing][0]  # type: ignore[index]
        assert name in {standing, "api"}
    assert len({mark for mark, _ in MEANINGS.values()}) == len(MEANINGS)


def test_of_one_service_there_is_nothing_to_draw() -> None:
    summary = Summary("", "", "", (), (), (), 0, (), (), 0, (ServiceLine("api", "untried"),), ())
    assert picture(summary) == ""


def test_long_names_are_cut_in_the_box_and_whole_in_its_title() -> None:
    long = "库存服务" * 20
    services = (ServiceLine("api", "untried"), ServiceLine(long, "lost"))
    calls = (ServiceCall("api", long, 1, 0),)
    drawn = picture(Summary("", "", "", (), (), (), 0, (), (), 0, services, calls))
    (title,) = [t for t in re.findall("<title>(.*?)</title>", drawn) if "api" not in t]
    assert title.startswith(long)
    (shown,) = [t for t in re.findall("<text[^>]*>(.*?)</text>", drawn) if t.endswith("…")]
    assert cell_len(shown) <= LETTERS
