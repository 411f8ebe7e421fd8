"""Whatever a store holds, every face says the same of it: API, command line and pages count the
same devices, name findings in the same sentence, and no sentence contradicts a count."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from html import unescape
from typing import Any, Final

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from ldfi.dashboards.now.day_totals import DayKept
from ldfi.dashboards.words import capitalised
from ldfi.experiments.store import Database
from ldfi.experiments.store.schema import CampaignRow, FindingRow
from tests.dashboards.browsing import Browser, Site, site, text_of
from tests.kit.cli import At
from tests.kit.drawn_store import Drawn, Store, stores, together
from tests.kit.service import GIVEN, Unlimited, bearer, service

DRAWN: Final[dict[str, Any]] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture],
}
WELL: Final = ("hurt nobody", "Users do not notice", "all got what they asked for")
"""Said of an experiment or of a day only where nobody was hurt."""


class Faces:
    """All that shows what a store holds."""

    def __init__(self, here: Site, url: str) -> None:
        self.here = here
        self.browser: Browser = here.logged_in("viewer")
        self.api: httpx.Client = here.stranger().client
        self.api.headers.update(bearer(GIVEN["viewer"]))
        self.cli = At(here.url, "viewer", columns=300)
        self.database = Database(url)

    def hold(self, store: Store) -> None:
        """Have them show this store."""
        with self.database.change(time.time()) as change:
            store.put(change)
        self.here.app.state.day_kept = DayKept()

    def page(self, path: str) -> str:
        """Return what a page shows."""
        return text_of(self.browser.get(path))

    def answer(self, path: str) -> Any:
        """Return an answer of the API."""
        return self.api.get(f"/api/v1{path}").raise_for_status().json()


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faces]:
    url = f"sqlite:///{tmp_path_factory.mktemp('counts') / 'x.sqlite3'}"
    app = service(url)
    app.state.rate_limiter = Unlimited()
    with site(app) as here:
        found = Faces(here, url)
        yield found
        found.database.close()


def at(moment: float) -> str:
    """Write a time (Unix seconds) as an address of the page has it."""
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%SZ}"


def figure(text: str, pattern: str) -> tuple[int, ...]:
    """Return the numbers that a text gives in this place."""
    found = re.search(pattern, text)
    assert found is not None, (pattern, text)
    return tuple(int(each.replace(",", "")) for each in found.groups())


def line(devices: Mapping[str, int]) -> str:
    """Say what the command line has to say of devices."""
    said = "{treated} treated of {reserved} reserved, {reached} reached, {hurt} hurt"
    if devices["bystanders_hurt"]:
        said += ", {bystanders_hurt} bystanders hurt"
    if devices["unknown"]:
        said += ", of {unknown} reserved nobody can say whether they were treated"
    return said.format(**devices)


def contradictions(devices: Mapping[str, int], text: str, *, of_all: bool = False) -> list[str]:
    """List what a text says against what was counted. ``of_all``: of several experiments, of which
    it may be said that one of them hurt none."""
    wrong = []
    if devices["hurt"] or devices["bystanders_hurt"] or devices["unknown"]:
        wrong += [each for each in WELL if each in text]
    if not of_all and devices["unknown"] and not devices["treated"]:
        wrong += re.findall(r"Devices treated 0|\b0 treated", text)
    return wrong


def check_experiment(faces: Faces, each: Drawn, answer: dict[str, Any]) -> None:
    """Hold what is said of one experiment against what was drawn."""
    row, devices = each.row, each.devices
    assert answer["devices"] == devices
    assert faces.answer(f"/experiments/{row.id}")["devices"] == devices
    page = faces.page(f"/experiments/{row.id}")
    if not each.lost:
        shown = figure(page, r"Devices ([\d,]+) treated of ([\d,]+) reserved")
        assert shown == (devices["treated"], devices["reserved"])
    if row.comparison:
        shown = figure(page, r"Reached by a failure ([\d,]+) Hurt ([\d,]+)")
        assert shown == (devices["reached"], devices["hurt"])
    assert contradictions(devices, page) == []


def check_campaign(faces: Faces, row: CampaignRow, mine: list[Drawn], shown: str) -> None:
    """Hold what is said of a campaign against its experiments. ``shown``: its row in the list."""
    devices = together(mine)
    answer = faces.answer(f"/campaigns/{row.id}")
    assert answer["devices"] == devices
    assert answer["failed_members"] == devices["hurt"]
    assert answer["experiments"] == sum(each.armed for each in mine)
    page = faces.page(f"/campaigns/{row.id}")
    treated = (r" of ([\d,]+) treated",) if devices["treated"] else ("",)
    counted = figure(page, r"Devices hurt ([\d,]+)" + treated[0])
    assert counted == (devices["hurt"], devices["treated"])[: len(counted)]
    assert ("Bystanders hurt" in page) is (devices["bystanders_hurt"] > 0)
    assert ("nobody can say how many they treated" in page) is (devices["unknown"] > 0)
    assert f"{devices['treated']:,}" in shown
    assert contradictions(devices, page, of_all=True) == []


def check_window(faces: Faces, store: Store) -> None:
    """Hold what is said of the last hour against what was armed in it."""
    armed = {each.row.id: each for each in store.experiments if each.armed}
    devices, since = together(armed.values()), time.time() - 3600
    answer = faces.answer(f"/was-it-us?since={since}&limit=200")
    assert {each["id"]: each["devices"] for each in answer["items"]} == {
        name: each.devices for name, each in armed.items()
    }
    for name in ("treated", "hurt", "bystanders_hurt"):
        assert answer[name] == devices[name], name
    assert (answer["answer"] == "no") is not any(
        each.lost or each.row.verdict == "harmful" or _hurting(each) for each in armed.values()
    )
    now = faces.page("/")
    for name, words in (("treated", "devices treated"), ("hurt", "of them hurt")):
        assert figure(now, words + r" ([\d,]+)") == (devices[name],)
    beside = re.search(r"bystanders hurt ([\d,]+)", now)
    assert int(beside[1] if beside else 0) == devices["bystanders_hurt"]
    said = faces.cli.run("was-it-us", "--last", "1h").stdout
    page = faces.page(f"/was-it-us?since={at(since)}&until={at(time.time() + 60)}")
    assert answer["words"] in said
    assert answer["words"] in page
    for text in (said, page):
        assert contradictions(devices, text, of_all=True) == [], text


def _hurting(each: Drawn) -> bool:
    return each.devices["hurt"] > 0 or each.devices["bystanders_hurt"] > 0


def check_finding(faces: Faces, row: FindingRow, listed: dict[str, Any]) -> None:
    """Hold the sentences that name a finding against each other."""
    sentence = listed["sentence"]
    assert faces.answer(f"/findings/{row.id}")["sentence"] == sentence
    html = unescape(faces.browser.get(f"/findings/{row.id}").text)
    assert f"<h1>{capitalised(sentence)}</h1>" in html
    assert f"<title>{capitalised(sentence)} · ldfi</title>" in html
    assert sentence in faces.page("/findings?state=all")
    if len(row.faults) > 3:
        assert f"and {len(row.faults) - 3} more" in sentence
    assert len(re.findall(r"\bs\d+\b", sentence)) <= 3


def check_order(faces: Faces, listed: Mapping[str, dict[str, Any]]) -> None:
    """Hold the order of findings, the worst first, and their owners and sentences against each
    other."""
    page = faces.browser.get("/findings?state=all&group=nothing").text
    linked = dict.fromkeys(re.findall(r'href="/findings/(\w+)"', page))
    answer = faces.cli.json("findings")
    assert [each["id"] for each in answer["items"]] == list(linked)
    assert answer["found"] == len(listed)
    shown = faces.cli("findings")
    assert [each for each in shown.split() if each in listed] == list(linked)
    for finding in listed.values():
        assert finding["sentence"] in shown
        assert faces.answer(f"/findings/{finding['id']}")["owners"] == finding["owners"]
    if len(listed) > 1:
        cut = faces.cli.run("findings", "--limit", "1")
        assert [each for each in cut.stdout.split() if each in listed] == list(linked)[:1]
        assert f"The worst 1 of {len(listed)}" in cut.stderr


def check(faces: Faces, store: Store) -> None:
    """Look at everything that shows a store."""
    faces.hold(store)
    listed = {each["id"]: each for each in faces.answer("/experiments?limit=200")["items"]}
    for each in store.experiments:
        check_experiment(faces, each, listed[each.row.id])
    campaigns = faces.page("/campaigns")
    for row in store.campaigns:
        check_campaign(faces, row, store.of(row), campaigns)
    check_window(faces, store)
    found = {each["id"]: each for each in faces.answer("/findings?limit=200")["items"]}
    for finding in store.findings:
        check_finding(faces, finding, found[finding.id])
    check_order(faces, found)
    check_command_line(faces, store)


def check_command_line(faces: Faces, store: Store) -> None:
    """Hold commands against the same, for programs and for people: of one of each, for time."""
    each, campaign = store.experiments[0], store.campaigns[0]
    devices = together(store.of(campaign))
    for words, counted in (
        (("experiment", "show", each.row.id), each.devices),
        (("campaign", "show", campaign.id), devices),
    ):
        assert faces.cli.json(*words)["devices"] == counted
        assert line(counted) in faces.cli(*words)
    (shown,) = [
        row
        for row in faces.cli("campaign", "list").splitlines()
        if row.strip().startswith(campaign.id)
    ]
    assert shown.split()[-2:] == [str(devices["treated"]), str(devices["hurt"])]
    for finding in store.findings[:1]:
        answer = faces.cli.json("findings", "show", finding.id)
        assert answer["sentence"] in faces.cli("findings", "show", finding.id)


def test_all_faces_say_the_same(faces: Faces) -> None:
    @settings(max_examples=2, phases=[Phase.generate], **DRAWN)
    @given(stores(time.time()))
    def faces_agree(store: Store) -> None:
        check(faces, store)

    faces_agree()


@pytest.mark.long
def test_all_faces_say_the_same_of_many_stores(faces: Faces) -> None:
    @settings(max_examples=100, **DRAWN)
    @given(stores(time.time()))
    def faces_agree(store: Store) -> None:
        check(faces, store)

    faces_agree()
