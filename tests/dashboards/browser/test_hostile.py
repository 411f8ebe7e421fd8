"""Hostile text is shown as text, wherever it comes from and wherever it goes."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Browser, Page

from ldfi.experiments.domain.campaign.campaign import Definition
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import Database
from ldfi.testing.world import World
from tests.dashboards.browser.hostile import LINE, PATHS, PAYLOADS, PROGRAM, SMALL, harm
from tests.dashboards.browser.pages import FILES, PAGES
from tests.dashboards.seeded import LIMITS, QUICK, Seeded, alive
from tests.kit.browser import Watched, watching
from tests.kit.service import GIVEN, bearer

NAME, REASON, WHY, DOWN, NOTE = LINE[0], LINE[1], LINE[3], LINE[9], LINE[11]
PROGRAMS = {PATHS[0]: PROGRAM, PATHS[1]: SMALL}
pytestmark = [
    pytest.mark.servers,
    pytest.mark.timeout(400),
]  # many pages, and browsers are slow on a busy machine
ERRORS = {400, 403, 404, 409, 422}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Seeded]]:
    """Everything that anybody can name is named badly, and a campaign goes on."""
    url = f"sqlite:///{tmp_path_factory.mktemp('hostile') / 'ldfi.sqlite3'}"
    _a_past(url)
    with (
        alive(url, PROGRAMS) as root,
        httpx.Client(
            base_url=f"{root}/api/v1", headers=bearer(GIVEN["admin"]), trust_env=False, timeout=20
        ) as api,
    ):
        yield root, _a_present(api)


def _a_past(url: str) -> None:
    """A campaign that found something, in simulated time."""
    database, now = Database(url), time.time() - 3600
    engine = Engine(database, now=now, lease=10.0, limits=LIMITS)
    world = World(database, PROGRAMS, engine=engine)
    world.now = now
    campaign = engine.scheduler.commands.start(Definition(Settings(**QUICK), (), NAME), NAME, now)
    while campaign.live() and world.now < now + 60:
        world.step(requests=30)
    engine.scheduler.shut_down("the past is over", world.now)
    database.close()


def _a_present(api: httpx.Client) -> Seeded:
    def made(path: str, body: Any) -> Any:
        answer = api.post(path, json=body)
        assert answer.is_success, (path, answer.text)
        return answer.json()

    def listed(path: str) -> list[Any]:
        items: list[Any] = api.get(path).json()["items"]
        return items

    made("/halt", {"reason": REASON})
    made("/resume", {"reason": REASON})
    for payload in LINE:
        api.post("/tokens", json={"name": payload, "role": "viewer"})  # some are refused
    made("/maintenance", {"reason": WHY, "down": [DOWN], "seconds": 3600})
    replay = {"ldfi": "comparison", "version": 1, "classes": [], "doubts": [], "old": {"name": WHY}}
    made("/replays/runs", {"document": replay})
    findings = listed("/findings")
    made(f"/findings/{findings[0]['id']}/acknowledge", {"reason": NOTE})
    made("/campaigns", {**QUICK, "name": NAME, "window": 600.0})
    body = {"metrics": [{"device": payload, "outcome": "failure"} for payload in PAYLOADS]}
    api.post("/device-metrics", json=body)
    return Seeded(
        campaigns={"nightly": listed("/campaigns")[-1]["id"]},
        findings=[each["id"] for each in findings],
        experiments=[each["id"] for each in listed("/experiments")],
        classes=[each["name"] for each in api.get("/classes").json()],
        replays=[each["id"] for each in listed("/replays/runs")],
    )


@pytest.fixture
def visitor(browser: Browser, site: tuple[str, Seeded]) -> Iterator[Watched]:
    with watching(browser, site[0], role="admin") as found:
        found.expected |= ERRORS
        yield found


def shown(page: Page) -> str:
    """All text of a page, white space taken together."""
    return _flat(page.locator("body").inner_text())


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def unharmed(visitor: Watched) -> None:
    visitor.page.wait_for_timeout(50)  # for what a handler would do
    assert not harm(visitor.page), visitor.page.url
    visitor.check()


def test_nothing_runs_on_any_page(visitor: Watched, site: tuple[str, Seeded]) -> None:
    known = site[1]
    for name, where in PAGES.items():
        if name != "class":
            visitor.visit(where(known))
            unharmed(visitor)


def test_names_of_spans_and_classes_are_text(visitor: Watched, site: tuple[str, Seeded]) -> None:
    known = site[1]
    assert any("<" in name for name in known.classes)
    for name in known.classes:
        page = visitor.visit(f"/classes/{quote(name, safe='')}")
        unharmed(visitor)
        text = shown(page)
        assert name in text


def test_points_are_text(visitor: Watched, site: tuple[str, Seeded]) -> None:
    name = quote(site[1].classes[0], safe="")
    for payload in PAYLOADS:
        visitor.visit(f"/point?request_class={name}&point={quote(payload, safe='')}")
        unharmed(visitor)


def test_findings_and_experiments_show_the_names_of_spans(
    visitor: Watched, site: tuple[str, Seeded]
) -> None:
    known = site[1]
    assert len(known.findings) >= 3
    for finding in known.findings:
        text = shown(visitor.visit(f"/findings/{finding}"))
        assert any(_flat(payload).strip() in text for payload in PAYLOADS)
        unharmed(visitor)
    for experiment in known.experiments[:6]:
        text = shown(visitor.visit(f"/experiments/{experiment}"))
        assert any(_flat(payload).strip() in text for payload in PAYLOADS)
        unharmed(visitor)


def test_what_people_wrote_is_text(visitor: Watched, site: tuple[str, Seeded]) -> None:
    known = site[1]
    campaign = f"/campaigns/{known.campaigns['nightly']}"
    for path, payloads in {
        campaign: [NAME],
        "/campaigns": [NAME],
        "/maintenance": [WHY, DOWN],
        "/audit": [REASON],
        f"/findings/{known.findings[0]}": [NOTE],
    }.items():
        text = shown(visitor.visit(path))
        for payload in payloads:
            assert _flat(payload) in text, (path, payload)
        unharmed(visitor)


ADDRESSES = (
    "/login?next={}",
    "/{}",
    "/findings/{}",
    "/classes/{}",
    "/experiments?state={0}&request_class={0}",
    "/findings?state={}",
    "/audit?what={0}&after={0}",
    "/map?down={0}&find={0}",
    "/?{0}={0}",
)


def test_addresses_are_text(visitor: Watched) -> None:
    everywhere = [(address, " ".join(LINE)) for address in ADDRESSES]
    here_and_there = [
        (ADDRESSES[number % len(ADDRESSES)], payload) for number, payload in enumerate(LINE)
    ]
    for address, payload in everywhere + here_and_there:
        visitor.visit(address.format(quote(payload, safe="")))
        unharmed(visitor)


@pytest.mark.parametrize("path", ["/campaigns/new", "/maintenance", "/tokens"])
def test_forms_give_back_text(visitor: Watched, path: str) -> None:
    page = visitor.visit(path)
    form = page.locator("main form").first
    for at, field in enumerate(form.locator("input[type=text], input:not([type]), textarea").all()):
        if field.is_visible():
            field.fill(LINE[at % len(LINE)])
    with page.expect_navigation():
        form.evaluate("form => { form.noValidate = true; form.requestSubmit(); }")
    unharmed(visitor)


def test_the_reason_of_a_halt_is_text_on_every_page(
    visitor: Watched, site: tuple[str, Seeded]
) -> None:
    page = visitor.visit("/halt")
    page.get_by_role("main").get_by_role("textbox").first.fill(REASON)
    page.get_by_role("main").get_by_role("button").first.click()
    page.wait_for_url(lambda url: not url.endswith("/halt"))
    for path in ("/", "/campaigns", f"/findings/{site[1].findings[0]}"):
        assert REASON in shown(visitor.visit(path))
        unharmed(visitor)


@pytest.mark.parametrize("name", FILES)
def test_files_are_harmless_too(
    visitor: Watched, browser: Browser, site: tuple[str, Seeded], tmp_path: Path, name: str
) -> None:
    got = visitor.page.request.get(f"{site[0]}{FILES[name](site[1])}")
    (tmp_path / "file.html").write_bytes(got.body())
    with watching(browser, f"file://{tmp_path}") as reader:
        text = shown(reader.visit("/file.html"))
        assert any(_flat(payload).strip() in text for payload in PAYLOADS)
        unharmed(reader)
