"""Every list on a terminal of 60 columns: nothing is cut, nothing is wider, names stay whole.

The service is real, and so are its campaign and its findings; only its names are as long as names
are, and hold what could be taken for markup or an emoji.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import httpx
import pytest

from ldfi.analysis.repairs.request_names import Called
from ldfi.experiments.cluster.tokens import Role
from ldfi.experiments.domain.campaign.campaign import Definition
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import Database, tokens
from ldfi.experiments.store.schema import CampaignRow, FindingRow, MaintenanceRow, ReplayRow
from ldfi.testing.live_service import served
from ldfi.testing.programs import Call, Step
from ldfi.testing.world import World
from tests.kit.cli import At
from tests.kit.service import GIVEN, bearer, service

LONG = 40
COLUMNS = 60


def long(name: str, fill: str = "-as-long") -> str:
    """A name of forty letters."""
    return (name + fill * LONG)[:LONG]


PATH = long("/boot", "/screen")[: LONG - len("GET ")]
CLASS = f"GET {PATH}"
LAYOUT = long("api>http:GET:layout/:x:/[red]")
PLAYLIST = long("api>http:GET:playlist/[/]/:smile:")
CAMPAIGN = long("nightly :x: [bold]")
DOWN, OWNER, REASON = long("recordsdb"), long("ann@example"), long("upgrade-[red]-of-:bug:")
HOLDER = long("kim_:x:")
NAME = "Boot :x: [the home screen]"
"""What people call the class."""

ALIKE = ("zz0000000001", "zz0000000002")
"""Ids that begin alike, and as no other does."""

PROGRAMS = {
    PATH: Call("root", (Step("critical", (Call(LAYOUT),)), Step("optional", (Call(PLAYLIST),))))
}


@dataclass(frozen=True)
class Listed(At):
    """A service with one of everything, and what it has by kind: ``ids``."""

    role: Role = "admin"
    columns: int = COLUMNS
    ids: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *words: str, code: int | None = None) -> str:
        done = self.run(*words)
        assert done.returncode in ({0, 1, 3} if code is None else {code}), (words, done)
        return done.stdout


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listed]:
    url = f"sqlite:///{tmp_path_factory.mktemp('lists') / 'ldfi.sqlite3'}"
    ids = filled(url)
    called = Called({CLASS: NAME, "GET /of-another-team": "Secret"})
    with served(service(url, called=called)) as address:
        yield Listed(address, ids=ids)


def filled(url: str) -> dict[str, str]:
    database, now = Database(url), time.time()
    world = World(database, PROGRAMS, engine=Engine(database, now=now - 3600))
    world.now = now - 3600
    world.steps(8)
    asked = Settings(
        kinds=("error",),
        treatment=0.3,
        control=0.3,
        min_traffic=50,
        settle=1.0,
        follow=0.0,
        apart=0.0,
    )
    campaign = world.engine.scheduler.commands.start(
        Definition(asked, name=CAMPAIGN), "ann", world.now
    )
    world.finish(campaign)
    window = Maintenance("a1b2c3d4e5f6", OWNER, REASON, (DOWN,), now, now + 3600)
    world.engine.scheduler.commands.open_maintenance(window, "ann", now)
    with database.change(now, "ann") as change:
        token, _ = tokens.create(change, HOLDER, "viewer")
        for identity in ("f6e5d4c3b2a1", *ALIKE):
            change.session.add(
                ReplayRow(id=identity, kept_at=now, kept_by=OWNER, verdict=None, document={})
            )
    world.now = now - 60
    world.steps(50)
    world.engine.scheduler.shut_down("the service was stopped", world.now)
    with database.read() as session:
        finding = session.query(FindingRow).first()
        assert finding is not None
        assert session.query(MaintenanceRow).count() == session.query(CampaignRow).count() == 1
        ids = {
            "campaign": finding.campaign_id,
            "experiment": finding.experiment_id,
            "finding": finding.id,
            "maintenance": window.id,
            "replay": "f6e5d4c3b2a1",
            "token": token.id,
        }
    database.close()
    return ids


LISTS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("campaign", "list"): (CAMPAIGN,),
    ("campaign", "show", "{campaign}"): (CAMPAIGN, CLASS),
    ("campaign", "experiments", "{campaign}"): (CLASS, LAYOUT),
    ("campaign", "start", "--dry-run", "--class", "GET /*"): (CLASS,),
    ("experiment", "list"): (CLASS, LAYOUT),
    ("experiment", "show", "{experiment}"): (CLASS, LAYOUT),
    ("findings",): (CLASS, LAYOUT),
    ("findings", "show", "{finding}"): (CLASS, LAYOUT),
    ("classes",): (CLASS, LAYOUT),
    ("whatif", "--down", "api>http:GET:playlist*", "--verbose"): (CLASS, LAYOUT),
    ("maintenance", "list"): (DOWN, OWNER, REASON),
    ("status",): (DOWN, REASON),
    ("audit",): (REASON, CLASS),
    ("token", "list"): (HOLDER,),
}
"""Every command that prints rows of what the service knows, and names that must be in them."""


@pytest.mark.parametrize("columns", [COLUMNS, 140])
@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_names_are_whole_at_every_width(at: Listed, words: tuple[str, ...], columns: int) -> None:
    shown = replace(at, columns=columns)(*(word.format(**at.ids) for word in words))

    assert max(map(len, shown.splitlines())) <= columns, shown
    for name in LISTS[words]:
        assert name in shown, shown


BY_ID: dict[tuple[str, ...], str] = {
    ("campaign", "show"): "campaign",
    ("campaign", "experiments"): "campaign",
    ("certificate", "show"): "campaign",
    ("certificate", "get"): "campaign",
    ("experiment", "show"): "experiment",
    ("findings", "show"): "finding",
    ("findings", "scenario"): "finding",
    ("findings", "issue"): "finding",
    ("export", "curl"): "finding",
    ("audit", "--subject"): "campaign",
}


@pytest.mark.parametrize("words", BY_ID, ids=" ".join)
def test_the_beginning_of_an_id_is_enough(at: Listed, words: tuple[str, ...]) -> None:
    identity = at.ids[BY_ID[words]]

    assert at(*words, identity[:8]) == at(*words, identity)


CHANGED: dict[tuple[str, ...], str] = {
    ("campaign", "pause", "--reason", "x"): "campaign",
    ("campaign", "resume"): "campaign",
    ("campaign", "stop", "--reason", "x"): "campaign",
    ("campaign", "release"): "campaign",
    ("experiment", "approve"): "experiment",
    ("experiment", "reject", "--reason", "x"): "experiment",
    ("experiment", "abort", "--reason", "x"): "experiment",
}


@pytest.mark.parametrize("words", CHANGED, ids=" ".join)
def test_what_is_over_is_known_by_the_beginning_of_its_id_too(
    at: Listed, words: tuple[str, ...]
) -> None:
    identity, more = at.ids[CHANGED[words]], [CLASS] if "release" in words else []

    short, whole = (at.run(*words, each, *more) for each in (identity[:8], identity))

    assert (short.returncode, short.stderr) == (whole.returncode, whole.stderr)
    assert identity in short.stderr or CLASS in short.stderr


def test_findings_are_acknowledged_and_tokens_revoked_by_a_beginning(at: Listed) -> None:
    assert at.ids["finding"] in at("findings", "ack", at.ids["finding"][:6], "--note", "known")
    assert at.ids["finding"] in at("findings", "link", at.ids["finding"][:6], "https://x.example")
    assert HOLDER in at("token", "revoke", at.ids["token"][:6])
    at.refused("token", "revoke", "nope")


def test_findings_of_a_campaign_are_listed_by_the_beginning_of_its_id(at: Listed) -> None:
    assert at("findings", "--campaign", at.ids["campaign"][:8]) == at("findings")
    assert at("findings", "--campaign", "ffffffffffff").strip() == "No such finding."


def test_an_ambiguous_beginning_names_the_candidates(at: Listed) -> None:
    done = at.run("open", "zz")

    assert (done.returncode, done.stdout) == (2, "")
    assert [line.split() for line in done.stderr.splitlines()[1:]] == [
        ["replay", identity, OWNER] for identity in ALIKE
    ]
    at.refused("open", ALIKE[0][:11])
    assert ALIKE[0] in at("open", ALIKE[0])


def test_what_nothing_begins_with_is_not_there(at: Listed) -> None:
    for typed in ("nothing", "%", "_", "ZZ", "zz/", "zz%"):
        assert f"an id that is {typed}," in at.refused("open", typed)
    at.refused("open", "--certificate", at.ids["finding"][:8])
    for group in ("campaign", "experiment", "findings"):
        assert "there is no" in at.refused(group, "show", "nothing")


def test_kinds_do_not_stand_in_each_others_way(at: Listed) -> None:
    """A letter may begin many ids, and only one of those that the command can mean."""
    assert at.ids["campaign"] in at("campaign", "show", at.ids["campaign"][:1])


@pytest.mark.parametrize("kind", ["campaign", "experiment", "finding", "replay"])
def test_the_page_of_an_id_is_opened_by_its_beginning(at: Listed, kind: str) -> None:
    link = at("open", at.ids[kind][:8], "--print").strip()

    place = {"replay": "replays"}.get(kind, f"{kind}s")
    assert link.startswith(f"{at.url}/login?link=")
    assert link.endswith(f"&next=%2F{place}%2F{at.ids[kind]}")


def test_the_page_of_a_certificate_is_its_campaigns(at: Listed) -> None:
    link = at("open", "--certificate", at.ids["campaign"][:8], "--print").strip()

    assert link.endswith(f"&next=%2Fcertificates%2F{at.ids['campaign']}")


# --- At a terminal, what people call requests; exact names wherever a program reads --------------


def person(at: Listed) -> Listed:
    """Somebody who only looks."""
    return replace(at, role="viewer")


CALLED = [
    ("findings",),
    ("experiment", "list"),
    ("campaign", "show", "{campaign}"),
    ("campaign", "experiments", "{campaign}"),
    ("whatif", "--down", "api>http:GET:playlist*", "--verbose"),
]


@pytest.mark.parametrize("words", [*CALLED, ("classes",)], ids=" ".join)
def test_people_see_what_they_call_it(at: Listed, words: tuple[str, ...]) -> None:
    asked = [word.format(**at.ids) for word in words]
    shown = person(at).shown(*asked)

    assert NAME in shown
    assert (CLASS in shown) is (words == ("classes",))  # there both are, to be typed
    assert max(map(len, shown.splitlines())) <= COLUMNS
    exact = person(at).shown(*asked, "--exact")
    assert CLASS in exact
    assert NAME not in exact
    assert max(map(len, exact.splitlines())) <= COLUMNS


SENTENCE = re.compile(r'"sentence": "[^"]*"')
"""For people, in the words of their pages, whoever reads it."""


@pytest.mark.parametrize("words", [*CALLED, ("classes",)], ids=" ".join)
def test_programs_see_exact_names(at: Listed, words: tuple[str, ...]) -> None:
    asked = [word.format(**at.ids) for word in words]
    for shown in (at(*asked), person(at).shown(*asked, "--json")):
        assert CLASS in shown
        assert NAME not in SENTENCE.sub("", shown)
    json.loads(at(*asked, "--json"))


def test_sentences_have_the_names_that_the_list_has(at: Listed) -> None:
    assert f"{NAME} is" in " ".join(person(at).shown("findings").split())
    assert NAME not in person(at).shown("findings", "--exact")


def test_points_keep_their_exact_names(at: Listed) -> None:
    assert LAYOUT in person(at).shown("findings")


def test_nobody_learns_of_classes_that_are_not_theirs(at: Listed) -> None:
    answer = httpx.get(
        f"{at.url}/api/v1/classes/called", headers=bearer(GIVEN["viewer"]), trust_env=False
    )
    assert answer.json() == {CLASS: NAME}
