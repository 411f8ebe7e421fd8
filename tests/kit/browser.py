"""A real Chromium: its pages are watched, and whatever is wrong with one is an error."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request, sync_playwright

from ldfi.experiments.cluster.tokens import Role
from tests.kit.service import GIVEN

Scheme = Literal["light", "dark"]

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDE = (1280, 800)
PHONE = (390, 844)
DESK = (1440, 900)
PATIENCE_MS = 20_000
PAINT_MS = 1_000
"""Quiet machines need less than a fifth of it."""

NOTHING_STICKS_OUT = "() => document.documentElement.scrollWidth <= innerWidth"


def missing(why: str) -> NoReturn:
    """Skip on a laptop, fail in CI."""
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


LEFT = ("htmx:sendAbort", "htmx:afterRequest")
"""What htmx says of a request that was under way when the page was left. One that fails says
``htmx:sendError`` or ``htmx:responseError`` as well."""


@contextmanager
def chromium(program: str | None = None) -> Iterator[Browser]:
    """The browser that the machine has; ``program`` where it is, if not on the path."""
    program = program or shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        missing("chromium is not installed: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Watched:
    """A page of the service in the browser. ``wrong``: what must never be, as it happens.

    That is: an error on the console (which a violated Content-Security-Policy is, too), a script
    that fails, a dialog, a request that goes elsewhere or is answered by an error.
    """

    site: str
    page: Page
    wrong: list[str] = field(default_factory=list)
    expected: set[int] = field(default_factory=set)
    """Statuses of answers that are no surprise."""

    def __post_init__(self) -> None:
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.wrong.append(f"script failed: {error}"))
        self.page.on("dialog", self._asked)
        self.page.on("request", self._requested)
        self.page.on("response", lambda got: self._answered(got.url, got.status))

    def visit(self, path: str) -> Page:
        """Open a page, and wait until its scripts have run."""
        self.page.goto(f"{self.site}{path}", wait_until="load")
        return self.page

    def log_in(self, token: str) -> None:
        """As a person does."""
        self.visit("/login")
        self.page.get_by_label("API token").fill(token)
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_url(lambda url: urlsplit(url).path != "/login")

    def check(self) -> None:
        """Raise AssertionError where anything was wrong so far."""
        assert not self.wrong, f"{self.page.url}: " + "\n".join(self.wrong)

    def _said(self, message: ConsoleMessage) -> None:
        if message.text.startswith(LEFT):
            return
        failed_to_load = "Failed to load resource" in message.text
        if message.type == "error" and not (failed_to_load and self.expected):
            self.wrong.append(f"console: {message.text} ({message.location})")

    def _asked(self, dialog: Dialog) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _requested(self, request: Request) -> None:
        if not request.url.startswith((f"{self.site}/", "data:")):
            self.wrong.append(f"request to elsewhere: {request.url}")

    def _answered(self, url: str, status: int) -> None:
        if status >= 400 and status not in self.expected:
            self.wrong.append(f"status {status}: {url}")


@contextmanager
def watching(
    browser: Browser,
    site: str,
    scheme: Scheme = "light",
    size: tuple[int, int] = WIDE,
    role: Role | None = None,
    **more: Any,
) -> Iterator[Watched]:
    """Open a fresh profile with one page, logged in as somebody of a ``role`` if one is given.

    ``more``: what else Playwright calls a context's options.
    """
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": size[0], "height": size[1]}, **more
    )
    try:
        visitor = Watched(site, context.new_page())
        if role is not None:
            visitor.log_in(GIVEN[role])
        yield visitor
    finally:
        context.close()


SEEN = """() => {
    const words = [], walker = document.createTreeWalker(document.querySelector("main"), 4);
    for (let node; (node = walker.nextNode()); ) {
        const range = document.createRange();
        range.selectNodeContents(node);
        const box = range.getBoundingClientRect();
        if (box.width && box.top >= 0 && box.bottom <= innerHeight) words.push(node.data.trim());
    }
    return words.join(" ").replace(/\\s+/g, " ");
}"""
"""The text that is in sight without scrolling."""


def in_sight(page: Page) -> str:
    """The text that is seen without scrolling."""
    said: str = page.evaluate(SEEN)
    return said


def painted(visitor: Watched, path: str) -> float:
    """Milliseconds until something of a page is to be seen."""
    page = visitor.visit(path)
    paint = "performance.getEntriesByName('first-contentful-paint')"
    page.wait_for_function(f"() => {paint}.length > 0")
    return float(page.evaluate(f"{paint}[0].startTime"))
