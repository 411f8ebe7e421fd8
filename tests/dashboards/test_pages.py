"""What the pages say and what their forms do, without a script."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from fastapi import FastAPI

from tests.dashboards.browsing import Browser, Markup, Site, site, text_of
from tests.dashboards.seeded import Seeded
from tests.kit.service import GIVEN, bearer, service


def test_the_overview_says_what_goes_on_and_what_it_may_cost(viewer: Browser) -> None:
    said = text_of(viewer.get("/"))
    for part in ("nothing armed", "Last day", "of 5,000", "GET /search", "What hurts most"):
        assert part in said
    work = text_of(viewer.get("/campaigns"))
    for part in ("nightly", "nothing left to try within the bounds"):
        assert part in work


def test_only_whoever_may_is_shown_how_to(reading: Site, viewer: Browser) -> None:
    assert "Halt everything" not in text_of(viewer.get("/"))
    assert "New campaign" not in text_of(viewer.get("/campaigns"))
    operator = text_of(reading.logged_in("operator").get("/"))
    assert "Tokens" not in operator
    assert "Halt" in operator
    assert "Tokens" in text_of(reading.logged_in("admin").get("/"))


@pytest.mark.parametrize(
    ("path", "next_step"),
    [
        ("/", "Send traces (OTLP) to /v1/traces"),
        ("/", "Put fit 's edge middleware"),
        ("/campaigns", "Create one"),
        ("/campaigns?state=paused", "Show all of them"),
        ("/calendar", "Give a campaign a schedule"),
        ("/map", "when traces of good requests have come in"),
        ("/maintenance", "Open one before you take something down"),
        ("/audit", "Start a campaign"),
        ("/tokens", "Give everybody a token of their own"),
    ],
)
def test_where_nothing_is_stands_what_to_do_next(nothing: Site, path: str, next_step: str) -> None:
    assert next_step in text_of(nothing.logged_in("admin").get(path))


def test_halting_asks_why_and_tells_everybody(here: Site, operator: Browser) -> None:
    viewer = here.logged_in("viewer")
    unsaid = operator.post("/halt", "/halt", reason="  ")
    assert unsaid.status_code == 422
    assert "must not be empty" in text_of(unsaid)
    assert "Everything is halted" not in text_of(viewer.get("/"))

    done = operator.post("/halt", "/halt", reason="checkout <b>fails</b>")
    assert (done.status_code, done.headers["location"]) == (303, "/")
    for path in ("/", "/audit", "/calendar"):
        page = viewer.get(path)
        assert "Everything is halted: checkout <b>fails</b>" in text_of(page)
        assert "<b>fails" not in page.text
        assert "Resume" not in Markup(page.text).words
    refused = operator.post("/campaigns", "/campaigns/new", **filled_in(operator))
    assert refused.status_code == 409

    assert operator.post("/resume").status_code == 303
    assert "Everything is halted" not in text_of(viewer.get("/"))
    assert "halt" in text_of(viewer.get("/audit?kind=halt"))


def test_whoever_holds_the_button_need_not_say_why(here: Site, operator: Browser) -> None:
    done = operator.post("/halt", "/halt", held="/classes/GET%20%2Fplay%0A%E2%80%AE" + "x" * 900)
    assert (done.status_code, done.headers["location"]) == (303, "/")
    told = text_of(here.logged_in("viewer").get("/findings"))
    assert "Everything is halted: operator held the button on /classes/GET /playxxx" in told

    also = text_of(operator.get("/halt"))
    assert "It is halted already" in also
    operator.post("/halt", "/halt", reason="checkout is slow")
    both = text_of(operator.get("/"))
    assert "operator held the button on /classes" in both
    assert "; also: checkout is slow. Nothing is injected" in both
    operator.post("/resume")


def test_who_may_not_halt_is_told_who_may(reading: Site, viewer: Browser) -> None:
    seen = viewer.get("/findings")
    assert "An operator may; you are viewer." in text_of(seen)
    (button,) = [each for each in Markup(seen.text).every("button") if "disabled" in each]
    assert button["aria-describedby"] == "halt-who"
    assert "disabled" not in reading.logged_in("operator").get("/findings").text
    assert viewer.post("/halt", "/", held="/").status_code == 403


def test_what_is_going_on_is_sent_again_only_when_it_has_changed(operator: Browser) -> None:
    page = operator.get("/").text
    again = page.partition('hx-get="/now?')[2].partition('"')[0]
    assert operator.get(f"/now?{again}").status_code == 204
    operator.post("/halt", "/halt", reason="x")
    changed = operator.get(f"/now?{again}")
    assert changed.status_code == 200
    assert 'id="banners" hx-swap-oob="true"' in changed.text


def filled_in(browser: Browser) -> dict[str, str]:
    """What the form for a new campaign holds when it is opened: its fields as a browser sends."""
    page = Markup(browser.get("/campaigns/new").text)
    fields = {}
    for tag in page.every("input"):
        if tag.get("type") not in {"checkbox", "hidden"} or "checked" in tag:
            fields[str(tag["name"])] = tag.get("value") or ""
    fields |= {"max_size": "2", "strategy": "union", "rule": "sequential", "on_drift": "reopen"}
    fields |= {"admission": "staged"}
    del fields["kinds"]
    return fields | {"kinds": "error"}


def test_a_campaign_is_created_as_the_form_says(operator: Browser) -> None:
    form = filled_in(operator) | {
        "name": "checkout <first>",
        "class": "GET /boot",
        "patterns": "GET /pay*\r\n\r\n",
        "members": "40",
        "max_union": "",
        "approve_above": "5",
        "cron": "30 9 * * mon",
        "timezone": "Europe/Berlin",
        "days": "mon",
        "hours_from": "09:00",
        "hours_to": "16:00",
        "blackout_first_1": "2026-12-18",
        "blackout_last_1": "2027-01-04",
        "blackout_why_1": "holidays",
    }
    made = operator.post("/campaigns", "/campaigns/new", **form)
    assert made.status_code == 303, text_of(made)
    said = text_of(operator.get(made.headers["location"]))
    for part in (
        "checkout <first>",
        "scheduled",
        "GET /boot , GET /pay*",
        "40 per experiment",
        "any number of faults united at most",
        "when more than 5 devices may be hurt",
        "30 9 * * mon (Europe/Berlin)",
        "mon, 09:00 to 16:00 (Europe/Berlin)",
        "not from 2026-12-18 to 2027-01-04: holidays",
        "findings are confirmed",
        "by operator",
    ):
        assert part in said, said


def test_kinds_that_take_an_argument_are_typed(operator: Browser) -> None:
    form = filled_in(operator) | {"kinds": "refused", "more_kinds": "status:500, grpc:ABORTED,"}
    made = operator.post("/campaigns", "/campaigns/new", **form)
    assert made.status_code == 303, text_of(made)
    said = text_of(operator.get(made.headers["location"]))
    assert "refused, status:500 and grpc:ABORTED" in said


def test_unticked_boxes_are_off(operator: Browser) -> None:
    form = filled_in(operator)
    del form["confirm"], form["verify"]
    made = operator.post("/campaigns", "/campaigns/new", **form)
    said = text_of(operator.get(made.headers["location"]))
    assert "findings are not confirmed, known ones not tried again" in said


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"members": "many"}, "members : must be a whole number"),
        ({"members": "0"}, "members : must be at least 1"),
        ({"treatment": "0.9"}, "treatment : must be at most 0.5"),
        ({"treatment": "nan"}, "treatment : must be a finite number"),
        ({"cron": "whenever"}, "cron : 'whenever' is not a cron expression"),
        ({"cron": "0 9 * * *", "timezone": "Mars"}, "cron : 'Mars' is no time zone"),
        ({"hours_from": "09:00"}, "calendar : hours 1: has a form or characters"),
        ({"blackout_first_0": "2026-12-18"}, "calendar : blackouts 0 why: must not be empty"),
        ({"kinds": ""}, "kinds : must not be empty"),
        ({"more_kinds": "status:200"}, "kinds : 1: 'status:200' is not a kind of fault"),
        ({"strategy": "luck"}, "strategy : must be one of smallest, likeliest, union, got"),
        ({"name": "a\x07b"}, "name : has a form or characters"),
    ],
)
def test_a_form_with_a_mistake_comes_back_as_it_was(
    reading: Site, wrong: dict[str, str], said: str
) -> None:
    operator = reading.logged_in("operator")
    form = filled_in(operator) | {"name": "keep me", "patterns": "GET /kept"} | wrong
    refused = operator.post("/campaigns", "/campaigns/new", **form)
    assert refused.status_code == 422
    assert said in text_of(refused)
    assert "GET /kept" in refused.text
    if "name" not in wrong:
        assert 'value="keep me"' in refused.text


def test_a_campaign_is_paused_resumed_and_stopped(operator: Browser) -> None:
    form = filled_in(operator) | {"name": "short"}
    to = operator.post("/campaigns", "/campaigns/new", **form).headers["location"]
    assert operator.post(f"{to}/pause", to, reason="lunch").status_code == 303
    assert "paused" in text_of(operator.get(to))
    assert "lunch" in text_of(operator.get(to))
    assert operator.post(f"{to}/resume", to).status_code == 303
    assert "running" in text_of(operator.get(to))
    again = operator.post(f"{to}/resume", to)
    assert again.status_code == 409
    assert "not paused" in text_of(again)
    assert operator.post(f"{to}/stop", to, reason="").status_code == 422
    assert operator.post(f"{to}/stop", to, reason="enough").status_code == 303
    assert "enough" in text_of(operator.get(to))
    assert f'action="{to}/stop"' not in operator.get(to).text


def test_a_campaign_that_is_over_shows_what_it_did(viewer: Browser, seeded: Seeded) -> None:
    said = text_of(viewer.get(f"/campaigns/{seeded.campaigns['nightly']}"))
    for part in (
        "finished",
        "3 of 3 explored to the end",
        "GET /play",
        "harmful",
        "survived",
    ):
        assert part in said


def test_campaigns_are_listed_by_state(viewer: Browser) -> None:
    said = text_of(viewer.get("/campaigns?state=paused"))
    assert "the player team ships 4.2 today" in said
    assert "nightly" not in said


def test_the_calendar_has_runs_blackouts_and_maintenance(viewer: Browser) -> None:
    seeded_from = datetime.fromtimestamp(time.time() - 6 * 3600, UTC).date()
    said = text_of(viewer.get(f"/calendar?from={seeded_from}"))  # on Mondays, the week before
    for part in (
        "a run begins: working hours",
        "blackout: working hours: the big sale",
        "maintenance: recordsdb: rolling upgrade of recordsdb",
        "a run has begun: nightly",
        "mon, tue, wed, thu, 09:00–16:00 (Europe/Berlin)",
    ):
        assert part in said
    assert "today" in text_of(viewer.get("/calendar"))
    later = datetime.fromtimestamp(time.time(), UTC).date() + timedelta(days=40)
    assert "today" not in text_of(viewer.get(f"/calendar?from={later}"))
    assert viewer.get("/calendar?from=9999-12-31").is_success
    assert viewer.get("/calendar?from=0001-01-01").is_success
    assert viewer.get("/calendar?from=soon").status_code == 422


def test_days_begin_where_the_viewer_is(viewer: Browser) -> None:
    assert "by the clock of UTC" in text_of(viewer.get("/calendar"))
    viewer.client.cookies.set("ldfi_zone", "Asia%2FTokyo")
    assert "by the clock of Asia/Tokyo" in text_of(viewer.get("/calendar"))
    viewer.client.cookies.set("ldfi_zone", "No/Where<script>")
    assert "by the clock of UTC" in text_of(viewer.get("/calendar"))


def test_the_map_answers_before_and_after_a_click(viewer: Browser) -> None:
    said = text_of(viewer.get("/map"))
    assert "14 services: 3 can each hurt users alone" in said
    assert "license means that GET /play is lost" in said
    assert "cdn hurts only if cdn-spare fails too" in said
    down = text_of(viewer.get("/map?down=recordsdb"))
    assert "If recordsdb is down" in down
    assert "GET /boot is lost if popular fails too. Always: layout" in down
    assert "GET /play does not call it." in down
    both = viewer.get("/map?down=cdn&down=cdn-spare")
    assert "GET /play would be lost" in text_of(both)
    assert 'href="/map?down=cdn-spare"' in both.text  # a click on cdn brings it up again
    one = text_of(viewer.get("/map?request_class=GET%20%2Fplay"))
    assert "4 services" in one and "layout" not in one
    few = text_of(viewer.get("/map?show=hurts"))
    assert "3 that do not hurt are not drawn." in few


def test_a_maintenance_is_planned_for_what_the_map_has_down(reading: Site) -> None:
    operator = reading.logged_in("operator")
    page = operator.get("/map?down=cdn&down=license").text
    leads = page.partition('<a class="button" href="/maintenance')[2].partition('"')[0]
    assert leads == "?down=cdn&amp;down=license#down"
    planned = operator.get(f"/maintenance{leads.replace('&amp;', '&')}").text
    assert "cdn\nlicense</textarea>" in planned


def test_links_to_what_was_point_by_point_lead_to_the_map(viewer: Browser) -> None:
    old = viewer.get(
        "/what-if?down=api%3Ehttp%3AGET%3Alayout%2Fscreens%2F*&request_class=GET+/boot"
    )
    assert old.status_code == 308
    said = text_of(viewer.get(old.headers["location"]))
    assert "If api>http:GET:layout/screens/* is down" in said
    assert "GET /boot would be lost" in said
    assert viewer.get("/what-if").headers["location"] == "/map"
    for page in ("/", "/map", "/map?down=cdn", "/search?q=point"):
        assert "what-if" not in viewer.get(page).text


def test_a_maintenance_window_is_opened_and_closed(operator: Browser) -> None:
    for wrong in ({"hours": "long"}, {"hours": "-1"}, {"hours": "inf"}, {"reason": ""}):
        fields = {"down": "cdn\nlicense", "hours": "1.5", "reason": "upgrade", **wrong}
        refused = operator.post("/maintenance", "/maintenance", **fields)
        assert refused.status_code == 422, wrong
        assert "license</textarea>" in refused.text
    operator.post("/maintenance", "/maintenance", down="cdn\nlicense", hours="1.5", reason="up")
    page = operator.get("/maintenance")
    assert "Maintenance: cdn, license until" in text_of(page)
    close = page.text.partition('/close"')[0].rpartition('action="')[2] + "/close"
    assert operator.post(close, "/maintenance").status_code == 303
    assert "No window is open" in text_of(operator.get("/maintenance"))


def test_the_audit_log_is_cut_down_to_what_is_looked_for(viewer: Browser, seeded: Seeded) -> None:
    nightly = seeded.campaigns["nightly"]
    page = viewer.get(f"/audit?subject={nightly}").text
    rows = Markup(page.partition("<main")[2].partition("</main>")[0]).text
    assert "campaign running" in rows
    assert "campaign finished" in rows
    assert "experiment" not in rows.partition("Why")[2]
    by_ben = text_of(viewer.get("/audit?who=ben")).partition("Why")[2]
    assert "halt checkout looks slow" in by_ben
    assert "ann" not in by_ben
    assert "Nothing is written here of that kind" in text_of(viewer.get("/audit?who=%25"))


def test_a_token_is_shown_once_and_opens_until_it_is_revoked(here: Site) -> None:
    admin = here.logged_in("admin")
    made = admin.post("/tokens", "/tokens", name="lee", role="viewer", days="30")
    assert made.headers["cache-control"] == "no-store"
    token = made.text.partition('id="made-token">')[2].partition("<")[0]
    assert token.startswith("ldfi_")
    page = admin.get("/tokens").text
    assert token not in page
    lee = here.stranger()
    assert lee.log_in(token).status_code == 303
    assert "lee (viewer)" in text_of(lee.get("/"))
    revoke = page.partition('aria-label="Revoke the token of lee"')[0].rpartition('action="')[2]
    assert admin.post(revoke.partition('"')[0], "/tokens").status_code == 303
    assert lee.get("/").status_code == 303


@pytest.mark.parametrize(
    "wrong", [{"name": "no spaces"}, {"name": "admin"}, {"role": "king"}, {"days": "soon"}]
)
def test_a_token_that_cannot_be_is_not_made(reading: Site, wrong: dict[str, str]) -> None:
    admin = reading.logged_in("admin")
    refused = admin.post("/tokens", "/tokens", **{"name": "lee", "role": "viewer", **wrong})
    assert refused.status_code == 422
    assert "made-token" not in refused.text


def test_times_are_utc_without_a_script_and_can_be_read_by_one(viewer: Browser) -> None:
    times = Markup(viewer.get("/audit").text).every("time")
    assert times
    for each in times:
        assert datetime.fromisoformat(str(each["datetime"])).tzinfo == UTC
    assert " UTC" in text_of(viewer.get("/audit"))


@pytest.mark.parametrize("path", ["/", "/campaigns", "/calendar", "/map", "/audit", "/halt"])
def test_every_page_can_be_used_by_keyboard_and_heard(reading: Site, path: str) -> None:
    page = Markup(reading.logged_in("operator").get(path).text)
    assert page.every("html")[0]["lang"] == "en"
    assert len(page.every("h1")) == 1
    assert len(page.every("main")) == 1
    first_link = page.every("a")[0]
    assert first_link["href"] == "#main"
    labelled = {tag.get("for") for tag in page.every("label")}
    for field in page.every("input"):
        if field.get("type") not in {"hidden", "checkbox", "radio"}:
            assert field.get("id") in labelled, field


def test_the_theme_chosen_is_there_from_the_start(viewer: Browser) -> None:
    assert "data-theme" not in viewer.get("/").text
    viewer.client.cookies.set("ldfi_theme", "dark")
    assert '<html lang="en" data-theme="dark">' in viewer.get("/").text
    viewer.client.cookies.set("ldfi_theme", '"><script>')
    assert "data-theme" not in viewer.get("/").text


def test_hostile_names_are_shown_as_they_are(here: Site, operator: Browser) -> None:
    payload = "<img src=x onerror=alert(1)>\"'{{ 7*7 }}"
    form = filled_in(operator) | {"name": payload, "patterns": payload}
    to = operator.post("/campaigns", "/campaigns/new", **form).headers["location"]
    operator.post(f"{to}/pause", to, reason=payload)
    operator.post("/maintenance", "/maintenance", down=payload, hours="1", reason=payload)
    for path in ("/", "/campaigns", to, "/audit", "/maintenance", "/calendar"):
        page = operator.get(path)
        assert payload in text_of(page), path
        assert "<img" not in page.text


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/no/such/<b>page", 404, "There is no page at /no/such/<b>page"),
        ("/campaigns/none", 404, "There is no campaign 'none'"),
        ("/findings/none", 404, "There is no finding 'none'"),
        ("/findings/none/file", 404, "There is no finding 'none'"),
        ("/experiments/none", 404, "There is no experiment 'none'"),
        ("/certificates/none", 404, "There is no campaign 'none'"),
        ("/replays/none", 404, "There is no replay 'none'"),
        (
            "/classes/a; `ldfi b`",
            404,
            "There is no request class 'a; `ldfi b`'; it may have expired",
        ),
        ("/resume", 405, "There is no page at /resume"),
        ("/static/none.js", 404, "There is no page at /static/none.js"),
    ],
)
def test_what_is_not_there_is_said_in_plain_words(
    viewer: Browser, path: str, status: int, said: str
) -> None:
    page = viewer.get(path, headers={"accept": "text/html,*/*"})
    assert page.status_code == status
    text = text_of(page)
    assert said in text
    assert "Go to Now , or to all findings" in text
    assert {"/", "/findings"} <= {tag["href"] for tag in Markup(page.text).every("a")}
    for word in ("/api/", "openapi", "`detail`", "`errors`", "ldfi findings", "identifier"):
        assert word not in page.text


def test_what_is_not_there_stays_a_document_for_programs(viewer: Browser) -> None:
    for path, accept in (("/no/such/page", "*/*"), ("/api/v1/nothing", "text/html")):
        answer = viewer.get(path, headers={"accept": accept})
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["title"] == "no such route"


def test_without_the_pages_the_service_is_whole(
    seeded_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ldfi.experiments.api.app.entry_points", lambda group: ())
    app: FastAPI = service(seeded_url)
    with site(app) as here:
        assert here.stranger().get("/").status_code == 404
        assert here.stranger().get("/healthz").is_success


HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)</script>'


def test_a_hostile_name_of_a_token_is_refused_and_shown_as_text(reading: Site) -> None:
    admin = reading.logged_in("admin")
    answer = admin.post("/tokens", "/tokens", name=HOSTILE, role="viewer")
    assert answer.status_code == 422
    markup = Markup(answer.text)
    assert HOSTILE in {typed.get("value") for typed in markup.every("input")}
    assert not markup.every("img")
    assert "alert(2)" not in markup.text
    assert HOSTILE not in Markup(admin.get("/tokens").text).text


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", " https://x/", "//x/"])
def test_a_finding_is_linked_to_web_pages_only(reading: Site, seeded: Seeded, url: str) -> None:
    operator = bearer(GIVEN["operator"])
    path = f"/api/v1/findings/{seeded.findings[0]}/link"
    answer = reading.stranger().client.post(path, json={"url": url}, headers=operator)
    assert answer.status_code == 422, answer.text
    page = reading.logged_in().get(f"/findings/{seeded.findings[0]}")
    assert url not in {link.get("href") for link in Markup(page.text).every("a")}
