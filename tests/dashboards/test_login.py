"""Who gets in: tokens of people, for so long as they are good."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from fastapi import FastAPI, Request, Response
from itsdangerous import TimestampSigner

from ldfi.dashboards.sessions import COOKIE, LASTS, LINK_LASTS, Sessions
from ldfi.experiments.api.rate_limit import STRANGERS, RateLimiter
from ldfi.experiments.cluster.tokens import Role
from ldfi.experiments.store import tokens
from ldfi.experiments.store.database import Database
from tests.dashboards.browsing import Browser, Site, site, text_of
from tests.kit.service import GIVEN, bearer, service


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    return service(f"sqlite:///{tmp_path_factory.mktemp('login') / 'ldfi.sqlite3'}")


@pytest.fixture(scope="module")
def here(app: FastAPI) -> Iterator[Site]:
    with site(app) as here:
        yield here


def test_strangers_are_asked_to_log_in_and_come_back_to_where_they_wanted_to_go(here: Site) -> None:
    browser = here.stranger()
    refused = browser.get("/audit?kind=campaign")
    assert refused.status_code == 303
    assert refused.headers["location"] == "/login?next=%2Faudit%3Fkind%3Dcampaign"

    form = browser.get(refused.headers["location"])
    assert 'name="next" value="/audit?kind=campaign"' in form.text
    entered = browser.log_in(GIVEN["viewer"], "/audit?kind=campaign")
    assert (entered.status_code, entered.headers["location"]) == (303, "/audit?kind=campaign")
    assert "viewer" in text_of(browser.get("/audit?kind=campaign"))


def _link(here: Site, role: Role) -> httpx.Response:
    asking = here.stranger().client
    return asking.post("/api/v1/login-links", headers=bearer(GIVEN[role]))


def _follow(browser: Browser, path: str) -> httpx.Response:
    link = parse_qs(urlsplit(path).query)["link"][0]
    page = browser.get(path)
    assert link in page.text
    assert 'name="token"' not in page.text
    return browser.client.post("/login", data={"csrf": browser.csrf(path), "link": link})


def test_a_link_logs_one_browser_in_once(here: Site) -> None:
    path = _link(here, "viewer").raise_for_status().json()["path"]
    browser, another = here.stranger(), here.stranger()
    assert _follow(browser, path).status_code == 303
    assert "viewer" in text_of(browser.get("/"))

    late = _follow(another, path)

    assert late.status_code == 403
    assert "used or old" in text_of(late)
    assert another.get("/").status_code == 303


@pytest.mark.parametrize("role", ["ingest", "devices", "edge", "metrics"])
def test_machines_get_no_link(here: Site, role: Role) -> None:
    assert _link(here, role).status_code == 403
    assert here.stranger().client.post("/api/v1/login-links").status_code == 401


def test_a_link_is_good_for_ten_minutes_with_our_key_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    db = Database("sqlite://")
    sessions = Sessions(b"key", lambda: db)
    link = sessions.link("kim")
    assert Sessions(b"another", lambda: db).redeem(link) is None
    assert Sessions(b"key", lambda: db).of(_with_cookie(link)) is None  # a link is no cookie
    assert sessions.redeem(sessions.signed("kim", "number")) is None  # and a cookie is no link
    now = time.time()
    monkeypatch.setattr(TimestampSigner, "get_timestamp", lambda _: int(now + LINK_LASTS + 2))
    assert sessions.redeem(link) is None


def _sessions(database: Database) -> Sessions:
    """Those of a process of one installation."""
    return Sessions(b"key", lambda: database)


def test_what_is_used_up_stays_so_at_every_process_and_after_a_restart(tmp_path: Path) -> None:
    """Eight processes that are handed one link at the same moment let one browser in."""
    url = f"sqlite:///{tmp_path / 'ldfi.sqlite3'}"
    stores = [Database(url) for _ in range(8)]
    here = list(map(_sessions, stores))
    link = here[0].link("kim")
    with ThreadPoolExecutor(len(here)) as threads:
        redeemed = list(threads.map(lambda each: each.redeem(link), here))
    assert sorted(redeemed, key=str) == [None] * 7 + ["kim"]
    session = here[0].begin(Response(), _with_cookie(""), "kim")
    copied = _with_cookie(here[0].signed("kim", session.number))
    assert here[1].of(copied) == session
    here[1].end(Response(), session)
    assert [each.of(copied) for each in here] == [None] * 8
    for each in stores:
        each.close()

    restarted = Database(url)
    again = _sessions(restarted)
    assert (again.redeem(link), again.of(copied)) == (None, None)
    restarted.close()


def _with_cookie(cookie: str) -> Request:
    header = (b"cookie", f"{COOKIE}={cookie}".encode())
    scope = {"type": "http", "method": "GET", "scheme": "http", "path": "/", "headers": [header]}
    return Request({**scope, "server": ("localhost", 80), "query_string": b""})


@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
def test_people_get_in(here: Site, role: Role) -> None:
    assert here.logged_in(role).get("/").is_success


@pytest.mark.parametrize("role", ["ingest", "devices", "edge", "metrics"])
def test_machines_do_not(here: Site, role: Role) -> None:
    browser = here.stranger()
    refused = browser.log_in(GIVEN[role])
    assert refused.status_code == 403
    assert f"for machines ({role})" in text_of(refused)
    assert browser.get("/").status_code == 303


def test_a_wrong_token_says_so_and_keeps_where_one_wanted_to_go(here: Site) -> None:
    refused = here.stranger().log_in("no-such-token-at-all", "/campaigns")
    assert refused.status_code == 403
    assert "unknown, expired or revoked" in text_of(refused)
    assert 'name="next" value="/campaigns"' in refused.text
    assert "no-such-token" not in refused.text


def test_guessing_is_limited_as_it_is_for_the_api(app: FastAPI, here: Site) -> None:
    browser = here.stranger()
    csrf = browser.csrf()
    before = app.state.rate_limiter
    app.state.rate_limiter = RateLimiter()
    attempts = [
        browser.client.post("/login", data={"csrf": csrf, "token": f"guess-{number:020}"})
        for number in range(STRANGERS.burst + 3)
    ]
    app.state.rate_limiter = before
    assert attempts[-1].status_code == 429
    assert "Retry-After" in attempts[-1].headers


def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(here: Site) -> None:
    browser = here.stranger()
    cookie = browser.log_in(GIVEN["operator"]).headers["set-cookie"].lower()
    for part in ("httponly", "samesite=strict", "path=/", f"max-age={LASTS}"):
        assert part in cookie
    assert "secure" not in cookie  # this is plain HTTP, on loopback
    assert GIVEN["operator"] not in cookie


def test_a_new_session_begins_at_login(here: Site) -> None:
    browser = here.stranger()
    before = browser.csrf()
    planted = browser.client.cookies[COOKIE]
    browser.log_in(GIVEN["operator"])
    assert browser.client.cookies[COOKIE] != planted
    assert browser.csrf("/") != before


def test_logging_out_ends_the_session_also_for_whoever_has_a_copy_of_the_cookie(here: Site) -> None:
    browser = here.logged_in()
    copied = browser.client.cookies[COOKIE]
    assert browser.post("/logout").headers["location"] == "/login"
    assert browser.get("/").status_code == 303
    assert here.stranger(**{COOKIE: copied}).get("/").status_code == 303


def test_a_forged_cookie_opens_nothing(app: FastAPI, here: Site) -> None:
    forged = Sessions(b"another key", lambda: app.state.database).signed(
        "given-0123456789abcdef", "number"
    )
    assert here.stranger(**{COOKIE: forged}).get("/").status_code == 303


def test_a_token_revoked_ends_its_sessions_at_once(app: FastAPI, here: Site) -> None:
    database = app.state.database
    with database.change(time.time(), "ann") as change:
        entry, token = tokens.create(change, "kim2", "operator")
    browser = here.stranger()
    assert browser.log_in(token).status_code == 303
    assert "kim2" in text_of(browser.get("/"))
    with database.change(time.time(), "ann") as change:
        tokens.revoke(change, entry.id)
    assert browser.get("/").status_code == 303


@pytest.mark.parametrize(
    "elsewhere",
    ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", ""],
)
def test_nobody_is_sent_to_another_site(here: Site, elsewhere: str) -> None:
    assert here.stranger().log_in(GIVEN["viewer"], elsewhere).headers["location"] == "/"


def test_whoever_is_logged_in_is_not_asked_again(here: Site) -> None:
    again = here.logged_in().get("/login?next=/audit")
    assert (again.status_code, again.headers["location"]) == (303, "/audit")


def test_a_link_from_elsewhere_finds_whoever_is_logged_in(here: Site) -> None:
    """A browser sends no SameSite=Strict cookie with it. It is told to ask once more, and does."""
    followed = here.stranger().get("/audit", headers={"sec-fetch-site": "cross-site"})
    assert followed.status_code == 200
    assert 'http-equiv="refresh" content="0"' in followed.text
    assert "Campaigns" not in followed.text


def test_a_fragment_asked_for_by_a_script_sends_the_page_to_the_login(here: Site) -> None:
    refused = here.stranger().get("/now", headers={"hx-request": "true"})
    assert (refused.status_code, refused.headers["hx-redirect"]) == (401, "/login")


def test_an_api_token_in_a_header_opens_no_page(here: Site) -> None:
    sent = {"authorization": f"Bearer {GIVEN['admin']}"}
    assert here.stranger().get("/tokens", headers=sent).status_code == 303
