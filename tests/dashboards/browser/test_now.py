"""*Now* in a real Chromium: what must be seen at three in the morning is seen without scrolling."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.dashboards.browser.test_details import armed
from tests.dashboards.seeded import alive, crowd
from tests.kit.browser import DESK, PAINT_MS, Watched, in_sight, painted, watching

pytestmark = [pytest.mark.servers, pytest.mark.timeout(400)]  # browsers are slow on a busy machine
EXPERIMENTS = 10_000


def test_the_questions_are_answered_without_scrolling(visitor: Watched) -> None:
    said = in_sight(visitor.visit("/"))

    # Is anything injected now? How long ago the last request came, the seed's campaigns decide.
    assert re.search(r"Nothing (is injected\.|can be injected: no request came in for)", said)
    assert "GET /play is lost when license does not answer" in said  # what hurts most?
    assert "of all requests" in said
    assert "Nobody yet knows of 6 findings that hurt" in said  # who must act?
    assert "No: nothing was injected." in said  # within the last 15 minutes
    visitor.check()


def test_what_was_armed_on_a_class_is_one_place_away(visitor: Watched) -> None:
    page = visitor.visit("/")
    page.get_by_label("From").fill("2026-01-05 02:10")
    page.get_by_label("to", exact=True).fill("2100-01-01 02:25")
    page.get_by_label("on", exact=True).fill("GET /play")
    page.get_by_role("button", name="Was it us?").click()
    page.wait_for_url("**/was-it-us?since=2026-01-05T01:10:00Z&until=2100-01-01T01:25:00Z*")

    said = in_sight(page)
    assert "From 2026-01-05 02:10:00 CET to 2100-01-01 02:25:00 CET" in said
    assert "on GET /play" in page.get_by_role("heading", level=2).first.inner_text()
    assert "Perhaps: " in said
    assert re.search(r"(license|cdn|cdn-spare) .* of \d+ devices hurt", said)
    assert "GET /boot" not in page.get_by_role("table").inner_text()
    expect(page.get_by_role("button", name="Copy link")).to_be_visible()
    visitor.check()


def test_what_if_a_service_goes_down_is_one_place_away(visitor: Watched) -> None:
    page = visitor.visit("/")
    page.get_by_role("link", name="Map", exact=True).click()
    page.wait_for_url("**/map")
    assert in_one("14 services: 3 can each hurt users alone") in in_one(in_sight(page))
    assert in_one("license means that GET /play is lost") in in_one(in_sight(page))  # no click yet
    page.get_by_role("link", name="playlist: hurts with another").click()
    page.wait_for_url("**/map?down=playlist")
    said = in_one(in_sight(page))
    assert in_one("If playlist is down") in said
    assert in_one("GET /boot is lost if popular fails too") in said
    assert in_one("GET /play does not call it") in said
    visitor.check()


def in_one(said: str) -> str:
    """Without spaces: long names are broken where their parts end."""
    return said.replace(" ", "")


WORST = ("GET /play is lost when", "GET /search is lost when", "GET /boot is lost when")


def test_while_something_runs_the_answers_are_in_sight_as_well(
    browser: Browser, seeded_url: str
) -> None:
    with alive(seeded_url) as url, watching(browser, url, size=DESK, role="operator") as visitor:
        armed(url)
        said = in_sight(visitor.visit("/"))
        assert "One experiment is running." in said
        assert "GET /boot : ratings " in said
        assert "Perhaps: the one experiment" in said
        assert all(weakness in said for weakness in WORST), said
        assert "Nobody yet knows of" in said

        armed(url, request_class="GET /search", hypothesis=["error@api>http:POST:spelling/check"])
        armed(url, request_class="GET /play", hypothesis=["error@api>http:GET:cdn/manifest"])
        said = in_sight(visitor.visit("/"))
        assert "Three experiments are running." in said
        for each in (
            "GET /boot : ratings does not answer",
            "GET /search : spelling does not answer",
            "GET /play : cdn does not answer",
        ):
            assert each in said, said
        assert all(weakness in said for weakness in WORST), said
        assert "Nobody yet knows of" in said
        visitor.check()


def test_times_have_24_hours_and_a_zone_whatever_the_locale(visitor: Watched) -> None:
    for path in ("/", "/was-it-us", "/audit"):
        page = visitor.visit(path)
        times = page.locator('time[data-show="minute"], time[data-show="second"]')
        for written in times.all_inner_texts():
            assert written.endswith((" CET", " CEST", " GMT+1", " GMT+2")), written
            assert "M " not in written


def test_with_ten_thousand_experiments_it_is_there_at_once(
    browser: Browser, seeded_url: str
) -> None:
    crowd(seeded_url, EXPERIMENTS)
    with (
        alive(seeded_url, requests=0) as root,
        watching(browser, root, size=DESK, role="viewer") as visitor,
    ):
        paints = [painted(visitor, "/") for _ in range(5)]
        assert sorted(paints)[2] < PAINT_MS
        assert visitor.page.evaluate("document.querySelectorAll('.mark').length") > 20
        assert "10,05" in in_sight(visitor.page)  # all of them are counted
        visitor.check()
