"""*Now* and *Was it us?*: what they say, of any application, without a script."""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import select

from ldfi.analysis.repairs.request_names import Called
from ldfi.dashboards.links import to_was_it_us
from ldfi.dashboards.now import strip
from ldfi.dashboards.now.day_totals import EVERY
from ldfi.dashboards.now.now_story import StatusLine
from ldfi.dashboards.worst_findings import ranked
from ldfi.experiments.domain.judging.counts import DeviceCounts
from ldfi.experiments.domain.judging.sequential_tests import Verdict
from ldfi.experiments.domain.judging.was_it_us import Bunch, Exposure
from ldfi.experiments.store.schema import ExperimentRow, FindingRow
from tests.dashboards.browsing import Browser, Markup, Site, counting, knowing, text_of
from tests.dashboards.test_queries import MOST

UTC = ZoneInfo("UTC")
HOUR = 3600.0


def standing(**given: object) -> StatusLine:
    calm = {
        "hurt": [], "counting": 0, "halted": False, "breach": False, "missing": "", "waiting": 0
    }  # fmt: skip
    return StatusLine(**{**calm, **given})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "said", "tone"),
    [
        ({}, "Nothing is injected. All is well.", "calm"),
        ({"waiting": 1}, "Nothing is injected. One thing waits for somebody.", "busy"),
        ({"waiting": 4}, "Nothing is injected. 4 things wait for somebody.", "busy"),
        ({"hurt": [(0, 0)]}, "One experiment is running. It has hurt nobody so far.", "busy"),
        (
            {"hurt": [(0, 0), (3, 0)]},
            "Two experiments are running. They have hurt 3 devices so far.",
            "bad",
        ),
        ({"hurt": [(1, 0)]}, "One experiment is running. It has hurt one device so far.", "bad"),
        ({"halted": True, "hurt": [(2, 0)]}, "Nothing is injected. Everything is halted.", "bad"),
        ({"breach": True}, "Nothing is injected. A guardrail is breached.", "bad"),
        ({"missing": "no traffic arrives"}, "Nothing can be injected: no traffic arrives.", "busy"),
        (
            {"missing": "no traffic arrives", "waiting": 6},
            "Nothing can be injected: no traffic arrives.",
            "busy",
        ),
    ],
)
def test_how_things_stand_in_a_sentence(given: dict[str, object], said: str, tone: str) -> None:
    assert (standing(**given).sentence, standing(**given).tone) == (said, tone)


def some(
    name: str, at: float, verdict: Verdict | None, count: int = 1, *, running: bool = False
) -> Bunch:
    """So many experiments, armed ``at`` hours after midnight."""
    harmful = count if verdict == "harmful" else 0
    exposure = Exposure(
        count, harmful, count if running else 0, counts=DeviceCounts(hurt=3 * harmful)
    )
    return Bunch(name, int(at * HOUR // EVERY), verdict, f"{name[-1]}{at}", at * HOUR, exposure)


def test_every_experiment_is_on_the_strip_by_its_verdict() -> None:
    every = [
        some("GET /b", 10, "tolerated"),
        some("GET /a", 10, "tolerated"),
        some("GET /a", 12, "harmful"),
        some("GET /a", 14, "inconclusive"),
        some("GET /a", 24, None, running=True),
    ]
    a, b = strip.rows(strip.by_class(every), 0, 24 * HOUR, {"a12": "<hurt>"})
    assert [(mark.kind, mark.place, mark.to) for mark in a.marks] == [
        ("tolerated", 10 / 24, "/experiments/a10"),
        ("none", 14 / 24, "/experiments/a14"),
        ("harmful", 12 / 24, "/experiments/a12"),
        ("running", 1.0, "/experiments/a24"),
    ]
    assert (b.request_class, len(b.marks)) == ("GET /b", 1)
    assert "&lt;hurt&gt;" in a.picture
    assert "survived" in a.picture


def test_what_would_lie_on_each_other_is_one_mark_that_leads_to_all() -> None:
    found = strip.by_class([some("GET /a", 10, "harmful", 40)])
    (row,) = strip.rows(found, 0, 24 * HOUR, {})
    (mark,) = row.marks
    assert mark.what == "40 experiments: harmful"
    assert mark.to.startswith("/was-it-us?since=1970-01-01T10:00:00Z&until=1970-01-01T10:06:00Z")
    assert row.exposure.experiments == 40


def test_hours_are_those_of_the_viewer() -> None:
    assert [each.name for each in strip.hours(0, 6 * HOUR, UTC)] == ["Thu 00:00", "03:00", "06:00"]
    tokyo = strip.hours(0, 6 * HOUR, ZoneInfo("Asia/Tokyo"))
    assert [each.name for each in tokyo] == ["09:00", "12:00", "15:00"]


def finding(name: str, *faults: str, state: str = "open") -> FindingRow:
    return FindingRow(
        id=f"{name}{len(faults)}",
        request_class=name,
        faults=list(faults),
        state=state,
        found_at=1.0,
    )


def test_what_hurts_most_is_what_one_failure_does_to_many() -> None:
    rows = [
        finding("GET /rare", "error@a>http:GET:b/x"),
        finding("GET /home", "error@a>http:GET:b/x", "error@a>http:GET:c/x"),
        finding("GET /home", "error@a>http:GET:d/x"),
        finding("GET /gone", "error@a>http:GET:d/x", state="fixed"),
    ]
    found = ranked(rows, {"GET /home": 90.0, "GET /rare": 10.0})
    assert [(each.finding.id, each.share) for each in found] == [
        ("GET /home1", 0.9),
        ("GET /rare1", 0.1),
        ("GET /home2", 0.9),
    ]
    assert [each.share for each in ranked(rows, {})] == [None] * 3


# ------------------------------------------------------------------ the pages themselves


def test_now_answers_for_an_application_nobody_prepared(harbour: Site) -> None:
    said = text_of(harbour.logged_in("viewer").get("/"))
    assert "`" not in said.partition("Lines to paste")[0], "what is to be typed is shown as code"
    for part in (
        "Nothing can be injected: no edge has asked since this service started, ",
        "What is missing until anything can be tried",
        "Every experiment of the last 24 hours",
        "Was it us?",
        "Perhaps:",
        "GET /locks is lost when tank ",
        "takes 100 % of all requests",
        "Nobody yet knows of a finding on GET /locks",
        "Armed now",
        "Budget",
    ):
        assert part in said, (part, said)


LOCKS = Called.parse('["GET /locks"]\nname = "The lock"\nlost = "no ship gets in"')


def test_everywhere_requests_are_called_as_people_do(harbour: Site) -> None:
    viewer = harbour.logged_in("viewer")
    with knowing(harbour.app, called=LOCKS):
        pages = {path: text_of(viewer.get(path)) for path in ("/", "/findings", "/map")}
        beside = {
            path: text_of(viewer.get(path)) for path in ("/was-it-us", "/classes/GET%20%2Flocks")
        }
    for path, said in pages.items():
        assert "no ship gets in" in said, (path, said)
    for path, said in {**pages, **beside}.items():
        assert "The lock" in said, (path, said)
    assert "means that no ship gets in" in pages["/map"]
    assert "Nobody yet knows of a finding on The lock" in pages["/"]


def test_no_page_has_the_exact_name_as_its_only_form(harbour: Site) -> None:
    viewer = harbour.logged_in("viewer")
    with harbour.app.state.database.read() as session:
        finding = session.scalars(select(FindingRow)).first()
        tried = session.scalars(select(ExperimentRow)).first()
    assert finding is not None and tried is not None
    paths = [
        *("/classes", "/experiments", f"/experiments/{tried.id}", "/audit", "/certificates"),
        *(f"/findings/{finding.id}", f"/findings/{finding.id}/file", "/map"),
        *(f"/{room}/{tried.campaign_id}" for room in ("campaigns", "certificates")),
        *(f"/certificates/{tried.campaign_id}/file", "/search?q=the+lock", "/search?q=ship"),
    ]
    with knowing(harbour.app, called=LOCKS):
        pages = {path: text_of(viewer.get(path)) for path in paths}
        chosen = viewer.get("/experiments?request_class=GET%20%2Flocks").text
    for path, said in pages.items():
        assert "The lock" in said, (path, said)
    assert "The lock: " in pages["/search?q=ship"]  # findings and experiments, too
    assert "The lock GET /locks" in pages["/search?q=the+lock"]  # the exact one beside it
    assert 'title="GET /locks"' in chosen


def test_every_mark_leads_to_a_page_and_the_list_says_the_same(
    harbour: Site,
) -> None:
    viewer = harbour.logged_in("viewer")
    page = viewer.get("/")
    marks = [tag["href"] for tag in Markup(page.text).every("a") if tag.get("tabindex") == "-1"]
    assert marks
    for to in marks:
        assert viewer.get(str(to)).is_success, to
    listed = {tag["href"] for tag in Markup(page.text).every("a") if tag.get("tabindex") != "-1"}
    assert {to for to in marks if str(to).startswith("/experiments/")} <= listed


def test_was_it_us_says_what_was_armed_and_who_halted(harbour: Site) -> None:
    viewer = harbour.logged_in("viewer")
    said = text_of(viewer.get("/was-it-us"))
    for part in (
        "Perhaps:",
        "tank does not answer",
        "devices hurt",
        "harmful",
        "ben · halt the sluice sticks",
        "/was-it-us?since=",
    ):
        assert part in said, (part, said)
    other = text_of(viewer.get("/was-it-us?request_class=GET+/elsewhere"))
    assert "No: nothing was injected." in other


def test_what_is_typed_leads_to_an_address_that_means_the_same_to_everybody(
    harbour: Site,
) -> None:
    viewer = harbour.logged_in("viewer")
    typed = (
        "since=2026-01-05+02:10&until=2026-01-05+02:25&zone=Europe/Berlin&request_class=GET+/locks"
    )
    told = viewer.get(f"/was-it-us?{typed}")
    assert told.status_code == 303
    to = told.headers["location"]
    assert to.startswith("/was-it-us?since=2026-01-05T01:10:00Z&until=2026-01-05T01:25:00Z&")
    said = text_of(viewer.get(to))
    assert "No: nothing was injected." in said
    assert "2026-01-05 01:10:00 UTC" in said
    assert viewer.get(to).text.count('value="GET /locks"') >= 1


@pytest.mark.parametrize("query", ["since=soon", "since=09:00&zone=Mars", "until=99:99"])
def test_a_window_with_a_mistake_comes_back_as_it_was(harbour: Site, query: str) -> None:
    viewer = harbour.logged_in("viewer")
    refused = viewer.get(f"/was-it-us?{query}")
    assert refused.status_code == 422
    assert "no time" in text_of(refused)


def test_all_times_have_24_hours_and_a_zone(harbour: Site) -> None:
    viewer = harbour.logged_in("viewer")
    for path in ("/", "/was-it-us"):
        text = viewer.get(path).text
        for written in re.findall(r"<time [^>]*>([^<]*)</time>", text):
            assert re.fullmatch(r"(\d{4}-\d{2}-\d{2} )?\d{2}:\d{2}(:\d{2})? UTC", written)
        assert not re.search(r"\d ?[AP]M\b", text)


def test_the_last_24_hours_are_one_question(harbour: Site) -> None:
    viewer = harbour.logged_in("viewer")
    with counting(harbour.app) as asked:
        viewer.get("/")
    assert len([each for each in asked if "armed_at <" in each and "GROUP BY" in each]) == 1
    assert len(asked) <= MOST


def test_a_halt_says_who_and_since_when(operator: Browser) -> None:
    operator.post("/halt", "/halt", reason="checkout <fails>")
    said = text_of(operator.get("/"))
    assert "Nothing is injected. Everything is halted." in said
    assert "has to resume: everything is halted by operator (checkout <fails>)" in said
    assert "has to resume “player”, which is paused" in said


def test_rows_of_the_audit_name_class_and_fault(harbour: Site) -> None:
    viewer = harbour.logged_in("viewer")
    for kind in ("experiment", "finding"):
        said = text_of(viewer.get(f"/audit?kind={kind}"))
        assert re.search(r"GET /locks ?: tank does not answer", said)


def test_the_link_is_whole() -> None:
    assert to_was_it_us(0, 900, "GET /a?b&c") == (
        "/was-it-us?since=1970-01-01T00:00:00Z&until=1970-01-01T00:15:00Z&request_class=GET+%2Fa%3Fb%26c"
    )


def test_without_traffic_it_lists_what_is_missing_with_the_lines_to_paste(nothing: Site) -> None:
    said = text_of(nothing.logged_in("viewer").get("/"))
    for part in (
        "Nothing can be injected: no traffic arrives.",
        "spans : 0 received since it started",
        "edges : none asks for rules",
        "classes : no request class is known",
        f'export OTEL_EXPORTER_OTLP_ENDPOINT="{nothing.url}"',
        'export LDFI_TOKEN="${EDGE_TOKEN}"',
    ):
        assert part in said, (part, said)
    assert "All is well" not in said
