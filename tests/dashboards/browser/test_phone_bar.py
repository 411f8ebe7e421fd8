"""On a phone the five places are a bar at the foot of the screen, within thumb's reach, on every
page, and in front of nothing that somebody has to read or to press."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.dashboards.browser.conftest import Site
from tests.dashboards.browser.pages import OPEN, PAGES
from tests.kit.browser import PHONE, Scheme, Watched, watching

pytestmark = [pytest.mark.servers, pytest.mark.timeout(400)]  # browsers are slow on a busy machine
PLACES: Final = ["Now", "Weaknesses", "Map", "Work", "Proof"]
FINGER: Final = 44
"""Pixels that a finger needs (WCAG 2.5.5)."""

BAR: Final = """() => {
    const bar = document.querySelector(".places"), box = bar.getBoundingClientRect();
    const links = [...bar.querySelectorAll("a")].filter(each => each.getClientRects().length);
    return {
        top: box.top, bottom: box.bottom, left: box.left, right: box.right,
        names: links.map(each => each.innerText),
        boxes: links.map(each => each.getBoundingClientRect().toJSON()),
        cut: links.filter(each => each.scrollWidth > each.clientWidth).map(each => each.innerText),
        reached: links.map(each => {
            const at = each.getBoundingClientRect();
            return document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2) === each;
        }),
    };
}"""
LAST: Final = """() => {
    scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
    return document.querySelector("main").getBoundingClientRect().bottom;
}"""
"""Where the content ends, once one has scrolled as far as one can."""


@pytest.fixture(scope="module", params=["light", "dark"])
def visitor(browser: Browser, site: Site, request: pytest.FixtureRequest) -> Iterator[Watched]:
    scheme: Scheme = request.param
    with watching(browser, site.url, scheme, PHONE, role="admin") as it:
        yield it


def bar(page: Page) -> Any:
    return page.evaluate(BAR)


@pytest.mark.parametrize("name", PAGES)
def test_the_places_are_at_the_foot_of_every_page(visitor: Watched, site: Site, name: str) -> None:
    page = visitor.visit(PAGES[name](site.known))
    found = bar(page)

    assert (found["left"], found["right"], found["bottom"]) == (0, PHONE[0], PHONE[1])
    assert found["names"] == PLACES
    assert all(found["reached"])
    assert not found["cut"]
    assert min(each["height"] for each in found["boxes"]) >= FINGER
    edges = [(each["left"], each["right"]) for each in found["boxes"]]
    assert all(left[1] <= right[0] + 0.5 for left, right in pairwise(edges))

    assert page.evaluate(LAST) <= bar(page)["top"], "something can only be read behind the bar"
    assert bar(page)["bottom"] == PHONE[1], "it stays where it is while one scrolls"
    visitor.check()


def test_the_bar_leads_to_the_places_and_says_where_one_is(visitor: Watched) -> None:
    page = visitor.visit("/")
    for place in PLACES[1:] + PLACES[:1]:
        link = page.get_by_role("navigation", name="Pages", exact=True).get_by_role(
            "link", name=place, exact=True
        )
        link.click()
        expect(link).to_have_attribute("aria-current", "true" if place in PLACES[2:] else "page")
        expect(page.locator(".places a[aria-current]:visible")).to_have_count(1)
    visitor.check()


def test_the_pages_of_a_place_stay_above(visitor: Watched) -> None:
    page = visitor.visit("/map")
    within = page.get_by_role("navigation", name="Pages of Map")
    within.get_by_role("link", name="Request classes").click()
    page.wait_for_url("**/classes")
    box = within.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < PHONE[1] / 3
    expect(within.locator("[aria-current]")).to_be_in_viewport()
    visitor.check()


def test_what_has_the_focus_is_not_behind_the_bar(visitor: Watched) -> None:
    page = visitor.visit("/findings")
    page.locator("#main").focus()
    hidden = []
    for _ in range(40):
        page.keyboard.press("Tab")
        focus = page.evaluate(
            """() => { const each = document.activeElement;
                return each.closest("main") && each.getBoundingClientRect().toJSON(); }"""
        )
        if focus and focus["bottom"] > bar(page)["top"] > focus["top"] - 1:
            hidden.append(page.evaluate("document.activeElement.outerHTML.slice(0, 120)"))
    assert not hidden


def test_it_leaves_room_for_what_the_phone_draws_itself(visitor: Watched) -> None:
    page = visitor.visit("/")
    before = bar(page)
    phone = page.context.new_cdp_session(page)
    phone.send("Emulation.setSafeAreaInsetsOverride", {"insets": {"bottom": 34}})
    found = bar(page)

    assert found["bottom"] == PHONE[1]
    assert before["top"] - found["top"] == 34
    assert max(each["bottom"] for each in found["boxes"]) <= PHONE[1] - 34
    assert page.evaluate(LAST) <= found["top"]
    phone.detach()


@pytest.mark.parametrize("width", [320, 390, 760])
def test_five_names_fit_on_the_smallest_phone(browser: Browser, site: Site, width: int) -> None:
    with watching(browser, site.url, size=(width, 640), role="viewer") as visitor:
        found = bar(visitor.page)
        assert found["right"] == width
        assert not found["cut"]
        assert found["boxes"][-1]["right"] <= width


def test_on_a_desk_they_are_beside_the_content(browser: Browser, site: Site) -> None:
    with watching(browser, site.url, role="viewer") as visitor:
        page = visitor.visit("/map")
        expect(page.get_by_role("navigation", name="Pages of Map")).to_have_count(0)
        box = page.locator(".places").bounding_box()
        assert box is not None
        assert box["width"] < 220
        assert box["y"] < 400


def test_whoever_is_not_logged_in_sees_no_bar(browser: Browser, site: Site) -> None:
    with watching(browser, site.url, size=PHONE) as visitor:
        page = visitor.visit(OPEN["login"](site.known))
        expect(page.locator(".places")).to_have_count(0)
