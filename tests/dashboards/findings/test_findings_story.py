"""*Weaknesses*: what it opens on, how it counts, ranks and groups, of any application."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.analysis.repairs.advice import advise
from ldfi.analysis.repairs.issue import TRACKERS
from ldfi.analysis.repairs.owners import Owners
from ldfi.dashboards.findings.findings_story import (
    NEW,
    SHOWN,
    Wanted,
    Weaknesses,
    matching,
    title,
    weaknesses,
)
from ldfi.dashboards.worst_findings import STATES
from ldfi.experiments.api.repairs import Explained
from ldfi.experiments.store.schema import FindingRow
from ldfi.lineage.run_summary import Runs
from tests.dashboards.browsing import Browser, Markup, Site, knowing, text_of
from tests.kit.service import GIVEN, bearer

NOW = 1_000 * 86_400.0
DAY = 86_400.0
TANK, GATE = "pump>http:PUT:tank/levels/*", "lock>db:UPDATE:sluicedb/gates"


def finding(
    name: str, *faults: str, state: str = "open", days: float = 30, number: int = 0
) -> FindingRow:
    return FindingRow(
        id=f"{name}{','.join(faults)}{number}",
        request_class=name,
        faults=list(faults),
        state=state,
        found_at=NOW - days * DAY,
        experiment_id="e",
    )


OPENED = Wanted()


def explained(row: FindingRow) -> Explained:
    owners = Owners.parse("pump @pumps")
    what = advise(row.request_class, row.faults, "open", {}, Runs(), {}, owners)
    return Explained(row, None, {}, what, None)


def shown(
    rows: list[FindingRow], wanted: Wanted = OPENED, rates: dict[str, float] | None = None
) -> Weaknesses:
    chosen = [explained(row) for row in matching(rows, wanted.state, NOW)]
    return weaknesses(rows, chosen, rates or {}, wanted, NOW)


EVERY = [
    finding("GET /a", f"error@{TANK}", state="open", days=1),
    finding("GET /a", f"delay@{TANK}", state="regressed"),
    finding("GET /b", f"error@{GATE}", state="suspected"),
    finding("GET /b", f"error@{GATE}", f"error@{TANK}", state="open"),
    finding("GET /c", f"error@{TANK}", state="acknowledged"),
    finding("GET /c", f"error@{GATE}", state="fixed"),
    finding("GET /d", f"error@{GATE}", state="refuted"),
    finding("GET /d", f"error@{TANK}", state="superseded"),
]


KILLED = finding("GET /e", f"refused@{GATE}", f"error@{TANK}", state="killed")


def test_it_opens_on_what_needs_somebody_and_counts_every_state() -> None:
    page = shown([*EVERY, KILLED])
    rows = [row for group in page.groups for row in group.rows]
    assert {row.finding.state for row in rows} == {"killed", "open", "regressed", "suspected"}
    assert rows[0].finding.state == "killed"
    assert {each.name: each.count for each in page.states} == {
        "Needs somebody": 5,
        "New": 1,
        "Killed the process": 1,
        "Open": 2,
        "Back again": 1,
        "Suspected": 1,
        "Being repaired": 1,
        "Fixed": 1,
        "Refuted": 1,
        "Explained by less": 1,
        "All that hurt": 5,
        "All": 9,
    }
    assert [each.name for each in page.states if each.chosen] == ["Needs somebody"]


@pytest.mark.parametrize("kind", ["delay", "delay:0.5..2", "slow:2"])
def test_a_slow_answer_is_one_however_it_is_slow(kind: str) -> None:
    page = shown([finding("GET /a", f"{kind}@{TANK}", state="open")])
    assert page.groups[0].rows[0].takes == "one slow answer"


def test_only_what_is_new_or_back_again_is_red() -> None:
    rows = [row for group in shown([*EVERY, KILLED], Wanted("all")).groups for row in group.rows]
    assert sorted((row.state, row.tone) for row in rows) == [
        ("back again", "bad"),
        ("being repaired", "wait"),
        ("explained by less", "plain"),
        ("fixed", "good"),
        ("killed the process", "bad"),
        ("new", "bad"),
        ("open", "plain"),
        ("refuted", "plain"),
        ("suspected", "wait"),
    ]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "No weakness has been found"),
        ([finding("a", state="fixed")], "No weakness needs anybody"),
        ([finding("a")], "1 weakness needs somebody"),
        ([finding("a", days=1)], "1 weakness needs somebody, 1 new this week"),
        ([finding("a"), finding("b", days=1)], "2 weaknesses need somebody, 1 new this week"),
        ([finding("a", days=1)] * 2, "2 weaknesses need somebody, all of them new this week"),
    ],
)
def test_the_title_answers_how_many(rows: list[FindingRow], said: str) -> None:
    assert title(rows, NOW) == said


def test_what_hurts_comes_before_what_may_one_failure_before_two_more_traffic_before_less() -> None:
    every = [*EVERY, finding("GET /b", f"error@{GATE}", state="acknowledged", number=1)]
    page = shown(every, Wanted("all", group="nothing"), {"GET /a": 10.0, "GET /b": 90.0})
    rows = [(each.finding.request_class, each.takes, each.state) for each in page.groups[0].rows]
    assert rows[:6] == [
        ("GET /b", "one failure", "being repaired"),
        ("GET /a", "one slow answer", "back again"),
        ("GET /a", "one failure", "new"),
        ("GET /c", "one failure", "being repaired"),
        ("GET /b", "two at once", "open"),
        ("GET /b", "one failure", "suspected"),
    ]


def test_filters_count_what_the_others_let_through_and_can_be_given_up() -> None:
    page = shown(EVERY, Wanted(owner="@pumps"))
    classes, owners, takes = page.facets
    assert [(each.name, each.count) for each in classes.choices] == [("GET /a", 2)]
    assert {each.name: each.count for each in owners.choices} == {"@pumps": 2, "nobody": 2}
    assert sorted((each.name, each.count) for each in takes.choices) == [
        ("one failure", 1),
        ("one slow answer", 1),
    ]
    (chosen,) = [each for each in owners.choices if each.chosen]
    assert (chosen.name, chosen.to) == ("@pumps", "/findings")


def test_groups_come_in_the_order_of_their_worst() -> None:
    page = shown(EVERY, Wanted(group="class"), {"GET /a": 90.0, "GET /b": 10.0})
    assert [(each.name, len(each.rows)) for each in page.groups] == [("GET /a", 2), ("GET /b", 2)]
    by_owner = shown(EVERY, Wanted(group="owner"))
    assert {each.name for each in by_owner.groups} == {"@pumps", "nobody"}


def test_a_long_list_goes_on() -> None:
    rows = [finding("GET /a", f"error@{TANK}", number=number) for number in range(SHOWN + 5)]
    first = shown(rows)
    assert first.more == f"/findings?start={SHOWN}"
    rest = shown(rows, Wanted(start=SHOWN))
    seen = [row.finding.id for page in (first, rest) for g in page.groups for row in g.rows]
    assert (len(seen), len(set(seen)), rest.more) == (SHOWN + 5, SHOWN + 5, "")


ROWS = st.lists(
    st.builds(
        finding,
        st.sampled_from(["GET /a", "GET /b"]),
        st.sampled_from([f"error@{TANK}", f"delay@{GATE}"]),
        state=st.sampled_from(
            [each for each in STATES if each not in {None, "new", "hurting", "all"}]
        ),
        days=st.floats(0, 20),
    ),
    max_size=12,
)


@given(ROWS, st.sampled_from(list(STATES)))
def test_every_count_is_what_following_the_link_shows(
    rows: list[FindingRow], state: str | None
) -> None:
    page = shown(rows, Wanted(state=state))  # type: ignore[arg-type]
    for each in [*page.states, *(one for facet in page.facets for one in facet.choices)]:
        asked = {name: found[0] for name, found in parse_qs(urlsplit(each.to).query).items()}
        assert shown(rows, Wanted(**asked)).found == each.count  # type: ignore[arg-type]


def test_new_is_what_was_found_within_a_week() -> None:
    rows = [finding("a", days=NEW / DAY - 0.1), finding("b", days=NEW / DAY + 0.1)]
    assert [row.request_class for row in matching(rows, "new", NOW)] == ["a"]


# ------------------------------------------------------------------ the page itself


@pytest.fixture
def viewer(harbour: Site) -> Iterator[Browser]:
    """Somebody at a harbour whose pumps have an owner."""
    with knowing(harbour.app, owners=Owners.parse("pump @pumps")):
        yield harbour.logged_in("viewer")


def test_a_row_says_what_hurts_how_much_whose_and_what_would_mend_it(
    viewer: Browser,
) -> None:
    response = viewer.get("/findings")
    said = text_of(response)
    for part in (
        "1 weakness needs somebody, 1 new this week",
        "GET /locks is lost when tank ",
        "100 %",
        "left alone",
        "@pumps",
        "What would mend it: Have pump cope without tank: keep what is to be written",
        "Nothing stands in for tank.",
    ):
        assert part in said, (part, said)
    assert re.search(r"(\d+) of \1 +0 of \d+ left alone", said), said  # all treated, no control
    assert "@pump" in text_of(viewer.get("/findings?group=owner"))


def test_every_link_of_the_page_leads_somewhere(viewer: Browser) -> None:
    page = Markup(viewer.get("/findings").text)
    links = {str(tag["href"]) for tag in page.every("a") if str(tag["href"]).startswith("/find")}
    assert len(links) > len(STATES)
    for to in links:
        assert viewer.get(to).is_success, to


@pytest.mark.parametrize("query", ["state=wrong", "group=colour", "start=-1", "owner="])
def test_what_nobody_can_ask_for_is_refused(viewer: Browser, query: str) -> None:
    assert viewer.get(f"/findings?{query}").status_code == 422


def test_the_page_of_a_finding_says_what_would_mend_it_and_writes_issues(
    viewer: Browser,
) -> None:
    page = Markup(viewer.get("/findings").text)
    (path,) = {
        str(t["href"]) for t in page.every("a") if re.search("findings/[0-9a-f]", str(t["href"]))
    }
    said = text_of(viewer.get(path))
    for part in (
        "What would mend it",
        "Owner: @pumps",
        "For GitHub",
        "For GitLab",
        "For Jira",
        "h3. What would mend it",
    ):
        assert part in said, (part, said)
    kept = text_of(viewer.get(f"{path}/file"))
    assert "What would mend it" in kept
    assert "As an issue for" not in kept


def test_the_api_says_what_the_pages_say(viewer: Browser) -> None:
    page = text_of(viewer.get("/findings"))
    ask = partial(viewer.client.get, headers=bearer(GIVEN["viewer"]))
    (listed,) = ask("/api/v1/findings").json()["items"]
    found = ask(f"/api/v1/findings/{listed['id']}").json()
    assert found["sentence"] in page
    assert found["repairs"][0]["said"] in page
    assert (found["repairs"][0]["service"], found["owners"]) == ("pump", ["@pumps"])
    for tracker in TRACKERS:
        issue = ask(f"/api/v1/findings/{listed['id']}/issue?tracker={tracker}").json()
        assert issue["tracker"] == tracker
        assert issue["title"].startswith(found["sentence"])
        assert found["repairs"][0]["point"] in issue["body"].replace("\u2060", "").replace("\\", "")
    assert ask(f"/api/v1/findings/{listed['id']}/issue?tracker=trac").status_code == 422
    assert ask("/api/v1/findings/none/issue").status_code == 404


def test_rows_of_the_audit_say_what_they_are_about_in_the_api_too(
    viewer: Browser,
) -> None:
    page = text_of(viewer.get("/audit"))
    rows = viewer.client.get("/api/v1/audit", headers=bearer(GIVEN["viewer"])).json()["items"]
    kinds = {row["what"].partition(" ")[0] for row in rows if row["about"]}
    assert kinds == {"experiment", "finding"}
    for about in (row["about"] for row in rows if row["about"]):
        assert about["request_class"] == "GET /locks"
        assert about["said"] in page
        assert about["faults"]


def test_a_past_without_any_weakness_says_so(nothing: Site) -> None:
    said = text_of(nothing.logged_in("viewer").get("/findings"))
    assert "No weakness has been found" in said
    assert "Nothing has been found yet." in said
