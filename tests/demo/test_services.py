"""What each service does when what it depends on fails."""

from __future__ import annotations

from typing import Any

import pytest

from ldfi.demo import repairs
from ldfi.demo.services import NAMES

TITLES = "http://titles/titles"


@pytest.mark.parametrize("service", NAMES)
def test_every_service_says_that_it_lives(service: str, town: Any) -> None:
    assert town.get(f"http://{service}/healthz").text == "ok"


@pytest.mark.parametrize("service", ["bookmarks", "history"])
def test_records_are_degraded_without_the_database(service: str, town: Any) -> None:
    url = f"http://{service}/{service}/member-0042"
    assert town.get(url).json()["degraded"] is False
    answer = town.get(url, failing={(service, "recordsdb")})
    assert (answer.status_code, answer.json()) == (200, {"rows": [], "degraded": True})
    assert town.get(url, slow={(service, "recordsdb")}).json()["degraded"] is True


def test_a_position_is_the_beginning_when_nobody_knows(town: Any) -> None:
    answer = town.get("http://bookmarks/bookmarks/m/7", failing={("bookmarks", "recordsdb")})
    assert answer.json() == {"seconds": 0, "degraded": True}


@pytest.mark.parametrize(
    ("url", "caller"),
    [
        ("http://playlist/playlists/member-1001", "playlist"),
        ("http://recommend/rows/member-1001", "recommend"),
        ("http://search/search?q=velvet", "search"),
    ],
)
def test_titles_go_without_names_while_those_cannot_be_had(
    url: str, caller: str, town: Any
) -> None:
    # Given that nothing is cached, a row still has its numbers
    bare = town.get(url, failing={(caller, "titles")}).json()["titles"]
    assert bare
    assert all(title["name"] == f"Title {title['id']}" for title in bare)
    # and what was bare is not kept: the next row has names
    named = town.get(url).json()["titles"]
    assert all(title["minutes"] for title in named)


def test_a_cached_row_needs_no_titles(town: Any) -> None:
    url = "http://recommend/rows/member-1002"
    town.get(url)
    town.get(url)
    assert town.calls == []


def test_titles_are_looked_up_one_by_one_and_together(town: Any) -> None:
    assert town.get("http://titles/titles/7").json()["id"] == 7
    assert town.get("http://titles/titles/999").json()["minutes"] is None
    both = town.get("http://titles/titles?ids=3,7").json()["titles"]
    assert [title["id"] for title in both] == [3, 7]


def test_recommendations_fall_back_to_trending_and_then_to_classics(town: Any) -> None:
    def row(*failing: tuple[str, str]) -> Any:
        home = town.get("http://api/boot", failing=set(failing)).json()["rows"]
        return next(row for row in home if row["row"] == "recommended")["titles"]

    personal, trending = row(), row(("api", "recommend"))
    classics = row(("api", "recommend"), ("api", "trending"))
    assert trending == town.get("http://trending/top").json()["titles"]
    assert personal != trending != classics
    assert classics


def test_a_rating_is_asked_for_twice_and_then_done_without(town: Any) -> None:
    home = town.get("http://api/boot", failing={("api", "ratings")}).json()
    assert town.calls.count(("api", "ratings")) == 2
    assert home["focus"]["stars"] is None


def test_a_profile_once_seen_stands_in_for_one_that_cannot_be_had(town: Any) -> None:
    def profile(device: str, *failing: tuple[str, str]) -> Any:
        headers = {"x-device-id": device}
        return town.get("http://api/boot", set(failing), headers=headers).json()["profile"]

    seen = profile("device-0815")
    assert profile("device-0815", ("api", "profiles")) == seen
    assert profile("device-4711", ("api", "profiles"))["name"] == "Guest"


def test_an_unreachable_record_is_no_degraded_record(town: Any) -> None:
    failing = {("api", "bookmarks"), ("history", "recordsdb")}
    assert town.get("http://api/boot", failing).status_code == 200


@pytest.mark.parametrize(
    ("weakness", "url", "failing"),
    [
        ("boot-playlist", "/boot", {("api", "playlist"), ("api", "playlist-fallback")}),
        ("boot-records", "/boot", {("bookmarks", "recordsdb"), ("history", "recordsdb")}),
        ("boot-layout", "/boot", {("api", "layout")}),
        ("play-license", "/play/17", {("api", "license")}),
    ],
)
def test_a_repaired_weakness_is_none(
    weakness: str,
    url: str,
    failing: set[tuple[str, str]],
    town: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = town.get("http://api" + url, failing)
    assert broken.status_code >= 500 or broken.json()["rows"] is None
    monkeypatch.setattr(repairs, "_repaired", {weakness})
    repaired = town.get("http://api" + url, failing)
    assert repaired.status_code == 200
    assert repaired.json().get("rows", True)


def test_a_repaired_speller_is_not_waited_for(town: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repairs, "_repaired", {"search-spelling"})
    answer = town.get("http://api/search?q=silent", slow={("api", "spelling")})
    assert answer.json()["suggestion"] is None


def test_a_query_gets_matches_and_a_better_spelling(town: Any) -> None:
    answer = town.get("http://api/search?q=silnt+harbour").json()
    assert answer["suggestion"] == "silent harbour"
    assert any("Harbour" in title["name"] for title in answer["rows"][0]["titles"])
