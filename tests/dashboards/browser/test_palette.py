"""The palette and the keys in a real Chromium: by keyboard, by mouse; and what is asked for."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.dashboards.browser.conftest import Site
from tests.dashboards.seeded import alive
from tests.kit import axe
from tests.kit.browser import (
    DESK,
    NOTHING_STICKS_OUT,
    PHONE,
    Scheme,
    Watched,
    in_sight,
    watching,
)

pytestmark = [pytest.mark.servers, pytest.mark.timeout(400)]  # browsers are slow on a busy machine


def options(page: Page) -> Locator:
    """What the palette offers."""
    return page.locator("#palette").get_by_role("option")


def opened(page: Page) -> None:
    """Open the palette, and wait until it shows something."""
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Find anything")).to_be_focused()
    expect(options(page).first).to_be_visible()


def chosen(page: Page) -> str:
    """What a screen reader says is chosen."""
    field = page.get_by_role("combobox", name="Find anything")
    option = page.locator(f"#{field.get_attribute('aria-activedescendant')}")
    expect(option).to_have_attribute("aria-selected", "true")
    return option.inner_text()


def test_a_service_is_found_by_keys_alone_and_what_if_it_goes_down_is_answered(
    visitor: Watched,
) -> None:
    page = visitor.visit("/audit")
    opened(page)
    page.keyboard.type("licen")
    expect(options(page).first).to_contain_text("license")
    expect(page.locator("#palette [role=status]")).to_contain_text("found")
    assert "what if it goes down" in chosen(page)
    page.keyboard.press("Enter")
    page.wait_for_url("**/map?down=license")
    said = in_sight(page)
    assert "Nothing was injected for this." in said
    assert "this alone hurts." in said
    visitor.check()


def test_it_asks_for_nothing_before_it_is_opened(visitor: Watched) -> None:
    asked: list[str] = []
    page = visitor.page
    page.on("request", lambda request: asked.append(request.url))
    visitor.visit("/classes")
    assert not [url for url in asked if "/search" in url]
    opened(page)
    assert [url for url in asked if "/search" in url]
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    visitor.check()


def test_arrows_go_round_and_enter_waits_for_what_was_typed(visitor: Watched) -> None:
    page = visitor.visit("/classes")
    opened(page)
    first = chosen(page)
    page.keyboard.press("ArrowUp")
    last = chosen(page)
    page.keyboard.press("ArrowDown")
    assert chosen(page) == first != last
    page.keyboard.type("calendar")
    page.keyboard.press("Enter")  # faster than any answer
    page.wait_for_url("**/calendar")
    visitor.check()


def test_the_mouse_opens_it_and_chooses(visitor: Watched) -> None:
    page = visitor.visit("/classes")
    page.get_by_role("link", name="Find anything").click()
    page.get_by_role("combobox", name="Find anything").fill("audit")
    options(page).filter(has_text="Audit log").click()
    page.wait_for_url("**/audit")
    visitor.check()


def test_the_question_mark_lists_the_keys_unless_one_types_or_switched_it_off(
    visitor: Watched,
) -> None:
    page = visitor.visit("/classes")
    field = page.get_by_role("main").get_by_role("textbox").first
    field.press("?")
    expect(page.locator("#keys")).to_be_hidden()
    page.get_by_role("heading", level=1).click()
    for _ in range(2):
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_contain_text("Find a page")
        page.get_by_role("button", name="Close").click()
    page.keyboard.press("?")
    page.get_by_role("checkbox", name="opens this list").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_hidden()
    page.get_by_role("button", name="Keys").click()
    page.get_by_role("checkbox", name="opens this list").check()
    visitor.check()


@pytest.mark.parametrize("size", [DESK, PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_and_everybody_can_use_it(
    browser: Browser, site: Site, axe_core: str, scheme: Scheme, size: tuple[int, int]
) -> None:
    with watching(browser, site.url, scheme, size, role="operator") as visitor:
        page = visitor.visit("/classes")
        opened(page)
        page.keyboard.type("play")
        expect(options(page).filter(has_text="GET /play").first).to_be_visible()
        assert page.evaluate(NOTHING_STICKS_OUT)
        assert not axe.grave_violations(page, axe_core)
        page.keyboard.press("Escape")
        expect(page.locator("#palette")).to_be_hidden()
        page.locator("body").press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        assert page.evaluate(NOTHING_STICKS_OUT)
        assert not axe.grave_violations(page, axe_core)
        visitor.check()


def test_without_a_script_there_is_a_page(browser: Browser, site: Site) -> None:
    with watching(
        browser, site.url, size=PHONE, java_script_enabled=False, role="viewer"
    ) as visitor:
        page = visitor.visit("/classes")
        page.get_by_role("link", name="Find anything").click()
        page.get_by_role("main").get_by_role("searchbox").fill("license")
        page.get_by_role("button", name="Find").click()
        page.get_by_role("link", name="what if it goes down").click()
        expect(page).to_have_url(f"{site.url}/map?down=license")
        visitor.check()


def test_actions_are_taken_by_keys_alone_and_escape_takes_none(
    browser: Browser, seeded_url: str
) -> None:
    with (
        alive(seeded_url, requests=0) as root,
        watching(browser, root, size=DESK, role="operator") as visitor,
    ):
        page = visitor.visit("/findings")
        finding = page.locator("a.say").first.get_attribute("href") or ""
        opened(page)
        page.keyboard.type("new camp")
        page.keyboard.press("Enter")
        page.wait_for_url("**/campaigns/new")
        opened(page)
        page.keyboard.type(finding.rpartition("/")[2][:8])
        page.keyboard.press("Enter")
        page.wait_for_url(f"**{finding}")
        opened(page)
        page.keyboard.type("stop")
        expect(options(page).first).to_contain_text("Halt everything")
        page.keyboard.press("Escape")
        expect(page.locator("#palette")).to_be_hidden()
        assert page.url.endswith(finding)
        opened(page)
        page.keyboard.type("stop")
        page.keyboard.press("Enter")
        page.wait_for_url("**/halt")
        expect(page.get_by_label("Why?")).to_be_focused()
        page.keyboard.type("checkout is slow")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert").first).to_contain_text("Everything is halted")
        visitor.check()
