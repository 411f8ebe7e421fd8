"""Hold to halt in a real Chromium: by mouse, by key, by finger; and presses that are no hold."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.dashboards.seeded import Seeded, alive
from tests.kit import axe
from tests.kit.browser import PHONE, Watched, watching
from tests.kit.service import GIVEN, bearer

pytestmark = [pytest.mark.servers, pytest.mark.timeout(400)]  # browsers are slow on a busy machine
HOLD_MS, TOO_SOON_MS = 1_000, 600
HALTED = "Everything is halted: operator held the button on /classes."


class Service:
    """The service, as a program asks it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._headers = bearer(GIVEN["operator"])

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = httpx.request(
            method, f"{self.url}/api/v1{path}", json=body, headers=self._headers, trust_env=False
        )
        return answer.raise_for_status().json()

    @property
    def halted(self) -> str | None:
        reason: str | None = self.ask("GET", "/status")["halted"]
        return reason


@pytest.fixture(scope="module")
def running(
    seeded_file: tuple[Path, Seeded], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    copy = shutil.copy(seeded_file[0], tmp_path_factory.mktemp("halt") / "ldfi.sqlite3")
    with alive(f"sqlite:///{copy}", requests=0) as root:
        yield Service(root)


@pytest.fixture
def service(running: Service) -> Iterator[Service]:
    """Nothing is halted when a test begins."""
    yield running
    if running.halted is not None:
        running.ask("POST", "/resume")


@pytest.fixture(scope="module")
def everywhere(browser: Browser, running: Service) -> Iterator[Watched]:
    with watching(browser, running.url, role="operator") as it:
        yield it


@pytest.fixture
def visitor(everywhere: Watched, service: Service) -> Watched:
    """Somebody on a page that is not *Now*."""
    everywhere.wrong.clear()
    everywhere.visit("/classes")
    return everywhere


def put_pointer_on(page: Page) -> None:
    page.get_by_role("button", name="Hold to halt").hover()


def is_halted(page: Page) -> None:
    page.wait_for_url("**/")
    expect(page.get_by_role("alert")).to_contain_text(HALTED)


def nothing_happened(page: Page, service: Service) -> None:
    expect(page.locator("#halt-hint")).to_have_text(
        "Nothing has happened: hold it for a second. A short press asks why first."
    )
    page.wait_for_timeout(HOLD_MS)
    assert page.url.endswith("/classes")
    assert service.halted is None


def test_held_by_the_mouse_it_halts_at_once(visitor: Watched, service: Service) -> None:
    page = visitor.page
    put_pointer_on(page)
    page.mouse.down()
    expect(page.locator("#halt.holding")).to_be_visible()
    is_halted(page)
    page.mouse.up()
    assert service.halted == "operator held the button on /classes"
    expect(page.get_by_role("button", name="Hold to halt")).to_have_count(0)
    page.get_by_role("link", name="Say why").click()
    page.get_by_label("Why?").fill("checkout is slow")
    page.get_by_role("button", name="Add this").click()
    expect(page.get_by_role("alert")).to_contain_text("also: checkout is slow")
    visitor.check()


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_held_by_a_key_it_halts_at_once(visitor: Watched, key: str) -> None:
    page = visitor.page
    page.get_by_role("button", name="Hold to halt").focus()
    page.keyboard.down(key)
    for _ in range(4):
        page.wait_for_timeout(100)
        page.keyboard.down(key)  # a key that is held repeats itself
    is_halted(page)
    page.keyboard.up(key)
    visitor.check()


def test_held_by_a_finger_it_halts_at_once_on_a_phone(browser: Browser, service: Service) -> None:
    with watching(
        browser, service.url, size=PHONE, has_touch=True, is_mobile=True, role="operator"
    ) as visitor:
        page = visitor.visit("/classes")
        touch = page.context.new_cdp_session(page)
        box = page.get_by_role("button", name="Hold to halt").bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 120  # at the top, at once
        at = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}

        touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [at]})
        page.wait_for_timeout(TOO_SOON_MS)
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        nothing_happened(page, service)

        touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [at]})
        is_halted(page)
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        visitor.check()


def test_let_go_too_soon_nothing_happens_but_a_hint(visitor: Watched, service: Service) -> None:
    page = visitor.page
    put_pointer_on(page)
    page.mouse.down()
    page.wait_for_timeout(TOO_SOON_MS)
    page.mouse.up()
    nothing_happened(page, service)

    page.get_by_role("button", name="Hold to halt").focus()
    page.keyboard.down("Space")
    page.wait_for_timeout(TOO_SOON_MS)
    page.keyboard.up("Space")
    nothing_happened(page, service)
    visitor.check()


def test_whoever_moves_away_or_presses_escape_has_changed_their_mind(
    visitor: Watched, service: Service
) -> None:
    page = visitor.page
    put_pointer_on(page)
    page.mouse.down()
    page.mouse.move(600, 400)
    page.wait_for_timeout(HOLD_MS + 200)
    page.mouse.up()
    page.get_by_role("button", name="Hold to halt").focus()
    page.keyboard.down("Enter")
    page.keyboard.press("Escape")
    page.wait_for_timeout(HOLD_MS + 200)
    page.keyboard.up("Enter")
    assert page.url.endswith("/classes")
    assert service.halted is None
    visitor.check()


@pytest.mark.parametrize("press", ["mouse", "Enter", "Space", "a screen reader"])
def test_a_short_press_asks_why(visitor: Watched, service: Service, press: str) -> None:
    page = visitor.page
    button = page.get_by_role("button", name="Hold to halt")
    if press == "mouse":
        button.click()
    elif press == "a screen reader":
        button.evaluate("each => each.click()")
    else:
        button.press(press)
    expect(page.get_by_label("Why?")).to_be_focused()
    assert service.halted is None
    visitor.check()


def test_the_button_stays_under_the_finger_whatever_happens(
    visitor: Watched, service: Service
) -> None:
    page = visitor.page
    put_pointer_on(page)
    page.mouse.down()
    opened = service.ask(
        "POST", "/maintenance", {"down": ["recordsdb"], "reason": "an upgrade", "seconds": 60}
    )
    page.evaluate("htmx.trigger(document.body, 'ldfi:now')")
    is_halted(page)
    page.mouse.up()
    service.ask("POST", f"/maintenance/{opened['id']}/close")
    visitor.check()


def test_what_was_kept_back_meanwhile_is_shown_afterwards(
    visitor: Watched, service: Service
) -> None:
    page = visitor.page
    put_pointer_on(page)
    page.mouse.down()
    service.ask("POST", "/halt", {"reason": "somebody else was quicker"})
    page.wait_for_timeout(TOO_SOON_MS)
    page.mouse.up()
    expect(page.get_by_role("alert")).to_contain_text("somebody else was quicker")
    visitor.check()


def test_while_it_is_halted_everybody_can_use_the_page(
    visitor: Watched, service: Service, axe_core: str
) -> None:
    service.ask("POST", "/halt", {"reason": "a drill"})
    for path in ("/classes", "/halt"):
        page = visitor.visit(path)
        assert not axe.grave_violations(page, axe_core)
    visitor.check()
