"""The pages over the demo application, all of it real: a campaign is created, watched and halted,
and what it found is opened and its reproduction copied."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from ldfi.cli import demo
from ldfi.cli.demo_worlds import STREAMING
from ldfi.cli.ports import free_port
from ldfi.cli.processes import Processes
from tests.kit.browser import watching

pytestmark = [pytest.mark.servers, pytest.mark.long]

RATES = "boot=1,play=16,search=1"
"""Requests a second: mostly of the class that is explored."""

PLAY = "GET /play/*"
WEAKNESS = "refused@api>http:GET:license/licenses/*"
WHY = "the players' team asked us to"
ARMED_MS, FOUND_MS = 90_000, 150_000
SOMEBODY_TREATED = """() => [...document.querySelectorAll(
    '[data-arm=treatment][data-field=devices]')].some(each => parseInt(each.textContent) > 0)"""


@dataclass(frozen=True, slots=True)
class Running:
    """``ldfi serve`` with the demo before it."""

    url: str
    operator: str

    def status(self) -> dict[str, object]:
        """As the API tells it."""
        headers = {"authorization": f"Bearer {self.operator}"}
        answer = httpx.get(f"{self.url}/api/v1/status", headers=headers, trust_env=False)
        found: dict[str, object] = answer.raise_for_status().json()
        return found


@contextmanager
def running(folder: Path) -> Iterator[Running]:
    secret = demo.Secrets.make()
    url = f"http://127.0.0.1:{free_port()}"
    serve = [
        sys.executable,
        "-m",
        "ldfi.cli",
        "serve",
        "--port",
        url.rpartition(":")[2],
    ]
    spans = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{secret.ingest}",
    }
    with Processes(folder) as processes:
        processes.start(
            "ldfi",
            [*serve, "--database", str(folder / "ldfi.sqlite3")],
            {"LDFI_TOKENS": secret.tokens(), "LDFI_QUIET": "0.4"},
        )
        demo.wait_until_ready(url, processes)
        demo.start_application(processes, secret, url, spans, STREAMING, rates=RATES)
        yield Running(url, secret.operator)


@pytest.mark.timeout(420)
def test_a_campaign_from_its_creation_to_a_finding(browser: Browser, tmp_path: Path) -> None:
    with running(tmp_path) as service, watching(browser, service.url) as visitor:
        origin = service.url
        visitor.page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=origin)
        visitor.log_in(service.operator)

        page = visitor.page
        _create(visitor.visit("/campaigns/new"))

        # It is watched: what follows appears without the page being loaded again
        page.evaluate("window.stayed = true")
        page.wait_for_selector("[data-arm=treatment][data-field=devices]", timeout=ARMED_MS)
        page.wait_for_function(SOMEBODY_TREATED, timeout=ARMED_MS)
        assert page.evaluate("window.stayed")
        campaign = page.url
        visitor.visit("/")
        page.evaluate("window.stayed = true")
        open_ones = page.get_by_role("region", name="What hurts most").locator("li:has(.chip.open)")
        confirmed = open_ones.filter(has_text=f"{PLAY} is lost when license ")
        expect(confirmed).to_be_visible(timeout=FOUND_MS)
        assert page.evaluate("window.stayed")

        _halt(page)
        assert service.status()["halted"] == WHY
        assert service.status()["armed"] == []
        page.goto(campaign)
        expect(page.get_by_role("main")).to_contain_text("running")  # but nothing starts
        visitor.visit("/")

        confirmed.get_by_role("link").first.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("is lost when")
        expect(page.get_by_role("main")).to_contain_text(WEAKNESS)
        _copy(page)
        visitor.check()


def _create(page: Page) -> None:
    """Fill the form as somebody would who wants to see something soon."""
    kinds = page.get_by_text("every kind of request that is fit")
    kinds.click()
    while not page.get_by_role("checkbox", name=PLAY).is_visible():
        page.wait_for_timeout(500)
        page.reload()
        kinds.click()
    page.get_by_role("checkbox", name=PLAY).check()
    kinds.click()
    page.get_by_label("Name").fill("players first")
    page.get_by_text("More choices").click()
    for label, value in {
        "Share treated": "0.2",
        "Share in control": "0.2",
        "Members per experiment": "240",
        "Rise that matters": "0.4",
        "Pairs before a verdict": "6",
        "Observe for": "60",
        "Confirm after": "0",
        "Wait for late devices": "2",
        "Good requests first": "40",
        "Consistency": "0",
    }.items():
        page.get_by_label(label, exact=True).fill(value)
    page.get_by_role("button", name="Create the campaign").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("players first")


def _halt(page: Page) -> None:
    page.get_by_role("button", name="Hold to halt").click()
    page.get_by_role("button", name="Halt everything").click()
    expect(page.get_by_label("Why?")).to_be_focused()  # without a reason the browser refuses
    page.get_by_label("Why?").fill(WHY)
    page.get_by_role("button", name="Halt everything").click()
    expect(page.get_by_role("alert").filter(has_text="Everything is halted")).to_contain_text(WHY)


def _copy(page: Page) -> None:
    first = page.get_by_role("button", name="Copy").first
    command = page.locator(f"#{first.get_attribute('data-copy')}").text_content()
    first.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == command
    assert copied.startswith(("ldfi ", "curl "))
