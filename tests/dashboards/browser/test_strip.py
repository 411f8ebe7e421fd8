"""The strip of *Now* in a real Chromium: a window is dragged over, or chosen by keys, and asked
about. What leads there is the address that can be shared."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.dashboards.browser.conftest import Site
from tests.kit.browser import PHONE, Watched, watching

pytestmark = [pytest.mark.servers, pytest.mark.timeout(400)]  # browsers are slow on a busy machine
DAY = 86_400.0
CLOSE = 300.0
"""Seconds that a pixel may be: a phone shows a day on some 350 of them."""


def chooser(page: Page) -> Locator:
    return page.get_by_role("slider", name="A window of the last 24 hours")


def began(page: Page) -> float:
    """When the strip begins."""
    return float(chooser(page).get_attribute("data-since") or "nan")


def asked(page: Page) -> tuple[float, float]:
    """The window that the address asks about."""
    page.wait_for_url("**/was-it-us?*")
    query = parse_qs(urlsplit(page.url).query)
    assert set(query) == {"since", "until"}
    assert all(value[0].endswith("Z") for value in query.values())
    since, until = (datetime.fromisoformat(query[key][0]).timestamp() for key in query)
    return since, until


def place(page: Page, share: float, row: int = 0) -> tuple[float, float]:
    """A point of a row of the strip, at that share of the day."""
    box = page.locator(".track").nth(row).bounding_box()
    assert box is not None
    return box["x"] + share * box["width"], box["y"] + box["height"] / 2


def middle(mark: Locator) -> tuple[float, float]:
    """Where a mark is pressed."""
    box = mark.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def stand_still(page: Page) -> None:
    """Wait until a page that a finger pushed has come to rest."""
    page.evaluate(
        """async () => {
            for (let was, alike = 0; alike < 10; alike = scrollY === was ? alike + 1 : 0) {
                was = scrollY;
                await new Promise(requestAnimationFrame);
            }
        }"""
    )


def drag(page: Page, start: float, end: float) -> None:
    page.mouse.move(*place(page, start))
    page.mouse.down()
    page.mouse.move(*place(page, (start + end) / 2, row=1))
    page.mouse.move(*place(page, end, row=1))


@pytest.mark.parametrize(("start", "end"), [(0.5, 0.75), (0.75, 0.5)], ids=["right", "left"])
def test_a_window_is_dragged_over_and_asked_about(
    visitor: Watched, start: float, end: float
) -> None:
    page = visitor.visit("/")
    begin = began(page)
    drag(page, start, end)
    expect(page.locator(".chosen").first).to_be_visible()
    said = page.locator("#strip-words").inner_text()
    page.mouse.up()

    since, until = asked(page)
    assert since == pytest.approx(begin + DAY / 2, abs=CLOSE)
    assert until == pytest.approx(begin + DAY * 3 / 4, abs=CLOSE)
    assert (since % 60, until % 60) == (0, 0)
    answer = page.get_by_role("heading", level=2).first.inner_text()
    assert [word[:5] for word in answer.split() if ":" in word] == said.split(" to ")
    assert page.locator("#link").inner_text() == page.url
    visitor.check()


def test_a_drag_over_a_mark_opens_no_experiment(visitor: Watched) -> None:
    page = visitor.visit("/")
    x, y = middle(page.locator(".track .mark").last)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 20, y)
    page.mouse.move(x - 1, y)
    page.mouse.up()

    since, until = asked(page)
    assert 0 < until - since < 3600
    visitor.check()


def test_a_press_opens_what_lies_there(visitor: Watched) -> None:
    page = visitor.visit("/")
    to = page.locator(".track a").last.get_attribute("href") or ""
    assert to
    page.mouse.click(*middle(page.locator(".track .mark").last))

    page.wait_for_url(lambda url: url.endswith(to))
    visitor.check()


def test_escape_lets_a_drag_go(visitor: Watched) -> None:
    page = visitor.visit("/")
    drag(page, 0.5, 0.6)
    page.keyboard.press("Escape")
    expect(page.locator(".chosen").first).to_be_hidden()
    page.mouse.up()

    expect(page.locator("#strip-words")).to_have_text("Drag: was it us?")
    assert urlsplit(page.url).path == "/"
    visitor.check()


def test_what_is_new_waits_while_one_drags(visitor: Watched) -> None:
    page = visitor.visit("/")
    page.evaluate("document.getElementById('live').dataset.was = 'here'")
    drag(page, 0.5, 0.6)
    with page.expect_response(lambda got: urlsplit(got.url).path == "/"):
        page.evaluate("htmx.trigger(document.body, 'ldfi:changed')")
    page.wait_for_timeout(200)
    expect(page.locator("#live[data-was]")).to_have_count(1)
    page.keyboard.press("Escape")
    page.mouse.up()

    expect(page.locator("#live[data-was]")).to_have_count(0)
    visitor.check()


def test_a_window_is_chosen_by_keys_and_asked_about(visitor: Watched) -> None:
    page = visitor.visit("/")
    begin = began(page)
    chooser(page).focus()
    newest = chooser(page).get_attribute("aria-valuetext")
    for key in ("PageDown", "PageDown", "ArrowLeft", "ArrowLeft", "ArrowRight"):
        page.keyboard.press(key)
    assert chooser(page).get_attribute("aria-valuetext") != newest
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "PageUp"):
        page.keyboard.press(f"Shift+{key}")
    page.keyboard.press("Enter")

    since, until = asked(page)
    assert until - since == (15 + 65) * 60
    assert begin + DAY - 60 < until + (2 * 60 + 5 - 65) * 60 <= begin + DAY
    visitor.check()


def test_keys_stop_at_both_ends_of_the_day(visitor: Watched) -> None:
    page = visitor.visit("/")
    begin = began(page)
    chooser(page).focus()
    for key in ("End", "Shift+End", "Home", "PageDown", "Shift+Home", "Shift+Home"):
        page.keyboard.press(key)
    page.keyboard.press("Enter")

    since, until = asked(page)
    assert since == int(begin)
    assert 0 < until - since <= 16 * 60
    visitor.check()


def test_whoever_leaves_the_strip_has_chosen_nothing(visitor: Watched) -> None:
    page = visitor.visit("/")
    for leave in ("Tab", "Escape"):
        chooser(page).focus()
        expect(page.locator(".chosen").first).to_be_visible()
        page.keyboard.press(leave)
        expect(page.locator(".chosen").first).to_be_hidden()
    assert urlsplit(page.url).path == "/"
    visitor.check()


def test_a_finger_drags_and_still_scrolls(browser: Browser, site: Site) -> None:
    with watching(browser, site.url, size=PHONE, has_touch=True, role="viewer") as visitor:
        page = visitor.visit("/")
        begin, touch = began(page), page.context.new_cdp_session(page)

        def send(kind: str, x: float, y: float) -> None:
            points = [] if kind == "touchEnd" else [{"x": x, "y": y}]
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        page.locator(".track").first.scroll_into_view_if_needed()
        x, y = place(page, 0.5)
        send("touchStart", x, y)
        for up in range(10, 120, 10):
            send("touchMove", x, y - up)
        send("touchEnd", x, y)
        stand_still(page)
        assert page.evaluate("scrollY") > 0
        assert urlsplit(page.url).path == "/"

        x, y = place(page, 0.5)
        send("touchStart", x, y)
        for step in range(1, 11):
            send("touchMove", place(page, 0.5 + step / 40)[0], y)
        send("touchEnd", x, y)
        since, until = asked(page)
        assert since == pytest.approx(begin + DAY / 2, abs=2 * CLOSE)
        assert until == pytest.approx(begin + DAY * 3 / 4, abs=2 * CLOSE)
        visitor.check()


def test_without_a_script_the_form_asks(browser: Browser, site: Site) -> None:
    with watching(browser, site.url, java_script_enabled=False, role="viewer") as visitor:
        page = visitor.visit("/")
        expect(chooser(page)).to_have_count(0)
        expect(page.locator("#strip-words")).to_be_hidden()
        page.get_by_label("From").fill("2026-01-05 02:10")
        page.get_by_role("button", name="Was it us?").click()
        assert asked(page)[0] == datetime.fromisoformat("2026-01-05T02:10Z").timestamp()
