"""Classes, experiments, findings and certificates: what their pages say, and what they cost."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import select

from ldfi.experiments.scheduler.compaction import compact
from ldfi.experiments.store import Database, retention
from ldfi.experiments.store.schema import ExperimentRow, FindingRow
from tests.dashboards.browsing import Markup, Site, site, text_of
from tests.dashboards.seeded import Seeded
from tests.kit.service import GIVEN, bearer, service

BOOT = f"/classes/{quote('GET /boot', safe='')}"
LAYOUT = "api>http:GET:layout/screens/*"
TRACES = "https://jaeger.example/trace/{trace_id}"


@pytest.fixture(scope="module")
def here(
    seeded_file: tuple[Path, Seeded], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    copy = shutil.copy(seeded_file[0], tmp_path_factory.mktemp("details") / "ldfi.sqlite3")
    with site(service(f"sqlite:///{copy}", trace_url=TRACES)) as here:
        yield here


@pytest.fixture(scope="module")
def double(seeded_file: tuple[Path, Seeded]) -> str:
    """The finding of two failures of which neither hurts by itself."""
    return next(iter(found(seeded_file, 2, "GET /boot")))


def found(file: tuple[Path, Seeded], size: int, name: str) -> list[str]:
    database = Database(f"sqlite:///{file[0]}")
    with database.read() as session:
        rows = session.scalars(select(FindingRow).where(FindingRow.request_class == name))
        ids = [row.id for row in rows if len(row.faults) == size]
    database.close()
    return ids


def test_a_finding_can_be_read_by_whoever_has_never_heard_of_points(
    here: Site, double: str
) -> None:
    text = text_of(here.logged_in("viewer").get(f"/findings/{double}"))

    assert "GET /boot is lost when" in text
    assert "users do not get what they ask for" in text
    assert "at the same time" in text
    assert re.search(r"All \d+ devices that met these failures did not get what they", text)
    assert "Any one of these failures alone is survived: it takes both of them." in text
    assert "api's call to popular (GET /top) is refused" in text
    assert f"ldfi reproduce {double} --target https://staging.example.com" in text


def test_a_finding_is_told_the_same_when_all_that_may_go_has_gone(
    seeded_url: str, double: str
) -> None:
    # Given a year in which nothing happened, and a prune
    database, now = Database(seeded_url), time.time() + 365 * 86_400
    retention.prune(database, retention.Retention(audit=4e7, details=1.0), now, "ann")
    assert compact(database, now, now, "ann").rows
    database.close()
    # Then there is still a request that shows how it fails, and what would mend it
    with site(service(seeded_url)) as years_later:
        text = text_of(years_later.logged_in("viewer").get(f"/findings/{double}"))
    assert "A good run beside a bad one" in text
    assert "Suggestions, read from one failed request" in text


def test_a_finding_shows_a_good_run_beside_a_bad_one(here: Site, double: str) -> None:
    page = Markup(here.logged_in("viewer").get(f"/findings/{double}").text)

    kinds = [str(each.get("class")) for each in page.every("div")]
    assert "call injected" in kinds
    assert "went well without these failures" in page.text
    assert "failed with these failures" in page.text
    links = [str(each.get("href")) for each in page.every("a")]
    assert any(link.startswith("https://jaeger.example/trace/0000") for link in links)


def test_commands_can_be_copied_by_a_button_that_says_which(here: Site, double: str) -> None:
    page = Markup(here.logged_in("viewer").get(f"/findings/{double}").text)

    ids = {str(each.get("id")) for each in page.every("pre")}
    buttons = [str(each["data-copy"]) for each in page.every("button") if "data-copy" in each]
    assert len(buttons) == 4 + 2 * 3  # commands; title and text for each tracker
    assert set(buttons) <= ids


def test_acknowledging_asks_what_will_become_of_it(here: Site, seeded: Seeded) -> None:
    operator = here.logged_in("operator")
    hurts = [
        path
        for path in (f"/findings/{each}" for each in seeded.findings)
        if 'class="chip open"' in operator.get(path).text
    ]
    refused = operator.post(f"{hurts[0]}/acknowledge", hurts[0], reason=" ")
    assert refused.status_code == 422
    assert "What will become of it?" in text_of(refused)

    done = operator.post(f"{hurts[0]}/acknowledge", hurts[0], reason="we mend it <soon>")
    assert (done.status_code, done.headers["location"]) == (303, hurts[0])
    assert "we mend it <soon>" in text_of(operator.get(hurts[0]))

    viewer = here.logged_in("viewer")
    assert "Acknowledge" not in text_of(viewer.get(hurts[0]))
    forbidden = viewer.post(f"{hurts[0]}/acknowledge", hurts[0], reason="mine")
    assert forbidden.status_code == 403


def test_a_finding_is_tried_again_as_a_campaign_of_its_own(here: Site, double: str) -> None:
    operator = here.logged_in("operator")
    begun = operator.post(f"/findings/{double}/verify", f"/findings/{double}")

    assert begun.status_code == 303
    campaign = begun.headers["location"]
    assert campaign.startswith("/campaigns/")
    assert f"verify {double}" in text_of(operator.get(campaign))
    stopped = operator.client.post(
        f"/api/v1{campaign}/stop", json={"reason": "enough"}, headers=bearer(GIVEN["operator"])
    )
    assert stopped.is_success


def test_a_class_says_what_belongs_to_it_and_what_part_each_point_plays(here: Site) -> None:
    response = here.logged_in("viewer").get(BOOT)
    page = Markup(response.text)

    assert "Requests in which the method is GET and the path is /boot." in page.text
    graph = json.loads(
        re.findall(r'<script type="application/json">(.*?)</script>', response.text)[0]
    )
    roles = {each["point"]: each["standing"] for each in graph["points"]}
    assert roles[LAYOUT] == "critical"
    assert roles["api>http:GET:popular/top"] == "fallback"
    assert roles["api>http:GET:ratings/titles/*"] == "optional"
    for point in roles:  # the same as a table, for those who see no picture
        assert f"point={quote(point, safe='/')}" in response.text.replace("&amp;", "&")


MACHINE_WORDS = re.compile(
    r"critical|optional|untested|hypothes|(?<!/)\bmember|\w@\w|inconclusive|natur"
)


def test_a_class_is_told_in_sentences_with_its_exact_names_one_click_away(
    here: Site, seeded: Seeded
) -> None:
    html = here.logged_in("viewer").get(BOOT).text
    collapsed = re.compile(
        r"<details><summary[^>]*>Exact names.*?</details>|<script.*?</script>", re.S
    )
    main = html.partition("<main")[2].partition("</main>")[0]
    shown = Markup(collapsed.sub("", main)).text

    assert re.search(r"3 sets of failures hurt; \d+ questions are open\.", shown)
    assert "GET /boot is lost when layout does not answer." in shown
    assert re.search(r"\d+ of \d+ devices that met it were hurt\.", shown)
    assert "What if playlist is slow?" in shown
    assert not MACHINE_WORDS.findall(shown)
    assert not [each for each in (*seeded.findings, *seeded.experiments) if each in shown]
    assert "refused@api>http:GET:layout/screens/*" in Markup(main).text  # in its fold


def test_a_point_has_a_page_and_a_part_of_one(here: Site) -> None:
    path = f"/point?request_class={quote('GET /boot')}&point={quote(LAYOUT)}"
    viewer = here.logged_in("viewer")

    page, part = viewer.get(path), viewer.get(path, headers={"hx-request": "true"})

    assert "Its failure alone hurts. 100 % of the good requests call it" in text_of(page)
    assert "hurt when it is refused" in text_of(part)
    assert "<html" in page.text
    assert "<html" not in part.text
    assert viewer.get("/point?request_class=none&point=none").status_code == 404


def test_an_experiment_says_what_was_tried_how_it_went_and_why_it_stopped(here: Site) -> None:
    with here.app.state.database.read() as session:
        query = select(ExperimentRow.id).where(
            ExperimentRow.verdict == "harmful", ExperimentRow.reason == "evidence"
        )
        experiment = session.scalars(query).first()
    response = here.logged_in("viewer").get(f"/experiments/{experiment}")
    page = Markup(response.text)

    assert "Why it stopped: The evidence was enough." in page.text.replace("stopped :", "stopped:")
    assert "It hurts" in page.text
    for heading in ("Control against treatment", "Evidence", "Timeline", "Requests"):
        assert heading in page.text
    charts = re.findall(r'<script type="application/json">(.*?)</script>', response.text)
    chart = next(each for each in map(json.loads, charts) if "curve" in each)
    assert chart["curve"][-1][1] >= chart["harmful"]
    assert [each for each in page.every("svg") if each.get("class") == "chart evidence"]
    graph = next(each for each in map(json.loads, charts) if "points" in each)
    assert any(each["marks"] for each in graph["points"])


def test_lists_are_cut_down_and_go_on(here: Site, seeded: Seeded) -> None:
    viewer = here.logged_in("viewer")

    harmful = text_of(viewer.get("/experiments?verdict=harmful"))
    assert "survived" not in harmful.split("What failed on purpose")[1]
    assert "None like that." in text_of(viewer.get("/findings?state=refuted"))
    assert "None of the 3 classes" in text_of(viewer.get("/classes?name=no-such"))
    assert "GET /play" not in text_of(viewer.get("/classes?name=boot"))
    assert viewer.get("/experiments?verdict=wrong").status_code == 422


@pytest.mark.parametrize(
    "path", ["/classes/GET%20%2Fnone", "/experiments/none", "/findings/none", "/certificates/none"]
)
def test_what_is_not_there_is_said_to_be_missing(here: Site, path: str) -> None:
    missing = here.logged_in("viewer").get(path)
    assert missing.status_code == 404
    assert "There is no" in text_of(missing)


def test_without_anything_every_list_says_what_to_do_next(nothing: Site) -> None:
    operator = nothing.logged_in("operator")
    assert "Nothing has been found yet." in text_of(operator.get("/findings"))
    assert "Nothing has been tried yet." in text_of(operator.get("/experiments"))
    assert "No request class is known yet." in text_of(operator.get("/classes"))
    assert "No campaign yet" in text_of(operator.get("/certificates"))


class Outside(HTMLParser):
    """What a browser would fetch or run for a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in {"script", "link", "img", "iframe", "object", "embed", "base"}:
            self.found.append(str((tag, given)))
        self.found += [name for name in given if name.startswith(("on", "hx-")) or name == "src"]
        if tag == "a" and not str(given.get("href")).startswith(("https://", "http://")):
            self.found.append(f"leads nowhere from a disk: {given}")


def test_files_need_nothing_from_anywhere(here: Site, seeded: Seeded, double: str) -> None:
    headers = bearer(GIVEN["viewer"])
    stranger = here.stranger()
    for path, says in (
        (f"/api/v1/findings/{double}/file", "A good run beside a bad one"),
        (
            f"/api/v1/campaigns/{seeded.campaigns['nightly']}/certificates/file",
            "Nothing within the bounds is left untested",
        ),
    ):
        assert stranger.get(path).status_code == 401
        file = stranger.get(path, headers=headers)
        assert file.headers["content-disposition"].startswith("attachment; filename=")
        assert says in text_of(file)
        assert not Outside(file.text).found
        assert "url(" not in file.text
        assert "@import" not in file.text


def test_a_certificate_in_a_file_can_be_checked(here: Site, seeded: Seeded) -> None:
    from ldfi.checker.solving import check

    path = f"/certificates/{seeded.campaigns['nightly']}/file"
    page = here.logged_in("viewer").get(path).text
    documents = re.findall(r'<pre id="document-\d+">(.*?)</pre>', page, re.DOTALL)

    assert len(documents) == 3
    for document in documents:
        assert check(json.loads(Markup(document).text)) == []
