"""*Weaknesses* in a real Chromium: what hurts most is in sight, and filters lead where they say."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.dashboards.browser.conftest import Site
from tests.kit.browser import (
    PHONE,
    Watched,
    in_sight,
    watching,
)

pytestmark = [pytest.mark.servers, pytest.mark.timeout(400)]  # browsers are slow on a busy machine


def test_what_hurts_most_and_what_would_mend_it_are_in_sight(visitor: Watched) -> None:
    said = in_sight(visitor.visit("/findings"))
    assert "6 weaknesses need somebody, all of them new this week" in said
    assert "does not answer" in said
    assert "What would mend it: Have api cope without" in said
    assert "left alone" in said
    assert "Needs somebody 6" in said
    visitor.check()


def test_a_filter_shows_as_many_as_it_says(visitor: Watched) -> None:
    page = visitor.visit("/findings")
    page.get_by_role("link", name="two at once 4").click()
    expect(page.locator("a.say")).to_have_count(4)
    page.get_by_role("link", name="chosen: show all again").click()
    expect(page.locator("a.say")).to_have_count(6)
    page.get_by_role("link", name="Being repaired 1").click()
    expect(page.locator("a.say")).to_have_text("GET /play is lost when license does not answer")
    page.locator("a.say").click()
    expect(page.get_by_role("heading", name="What would mend it")).to_be_visible()
    visitor.check()


def test_without_a_script_everything_is_there(browser: Browser, site: Site) -> None:
    with watching(
        browser, site.url, size=PHONE, java_script_enabled=False, role="viewer"
    ) as visitor:
        page = visitor.visit("/findings")
        expect(page.locator("a.say")).to_have_count(6)
        page.get_by_role("link", name="Filter by request, owner, kind").click()
        page.get_by_role("link", name="one failure 2").click()
        expect(page.locator("a.say")).to_have_count(2)
        page.locator("summary").last.click()
        expect(page.get_by_text("refused@").last).to_be_visible()
