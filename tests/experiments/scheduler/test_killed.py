"""A campaign on a service that dies of a fault: one experiment, one suspicion, no second death."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from sqlalchemy import select

from ldfi.experiments.domain.campaign.campaign import Campaign, Definition
from ldfi.experiments.domain.traffic.observation import Outcome
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import ExperimentRow, NotificationRow
from ldfi.fit.protocol.mark import Mark
from ldfi.testing.spans import span
from ldfi.testing.world import QUICK, World

SHOP = "web>http:GET:shop/page"
PRICES = "shop>http:GET:prices/list"
FAULT = f"refused@{PRICES}"
KILLED = (FAULT,)


@dataclass
class Shop:
    """The processes of one service behind the edge, each by its number."""

    dies: bool = True
    caught: bool = False
    """Whether the edge has a fallback for all of it."""
    restart: float = 3.0
    up: float = 0.0
    """From when on it answers."""
    instance: int = 0
    deaths: list[float] = field(default_factory=list)

    def die(self, now: float) -> None:
        self.deaths.append(now)
        self.instance += 1
        self.up = now + self.restart


class Street(World):
    """The edge ``web`` asks ``shop``, which asks ``prices``. ``deploys``: when all processes of the
    shop are replaced, in peace; ``loses``: when a batch of its spans is lost."""

    shop = Shop()
    deploys: tuple[float, ...] = ()
    loses: tuple[float, float] = (0.0, 0.0)
    marks = True

    def _request(self, path: str) -> None:
        number, now = next(self._ids), self.now
        device, trace = f"d{number % self.devices}", f"{number:032x}"
        claimed = self.edges[0].claim(path, device, now)
        arm = claimed[1] if claimed else None
        meant = claimed is not None and any(str(each) == FAULT for each in claimed[0].faults)
        hit = meant and arm == "treatment"
        experiment = claimed[0].experiment if claimed else ""
        while self.deploys and self.deploys[0] <= now:
            self.deploys = self.deploys[1:]
            self.shop.instance += 1
        start = int(now * 1e9) + 1000 * number
        at = (start, start + 900)
        served = {"experiment": experiment, "arm": arm} if arm else {}
        up, spans = now >= self.shop.up, []
        if up and meant and self.marks:
            instance = f"{self.shop.instance:x}"
            said = str(Mark(str(arm), experiment, instance, *FAULT.split("@", 1)))
            when = (start + 300, start + 300)
            spans.append(span("m", "c", "internal", "shop", False, when, trace, mark=said))
        dead = up and hit and self.shop.dies
        if dead:
            self.shop.die(now)
        lost = self.loses[0] <= now < self.loses[1]
        if up and not dead and not lost:
            shown = {} if not meant else {"fired" if hit else "would_fire": "refused"}
            ends = (start + 200, start + 800)
            asked = {"method": "GET", "url": "http://shop/page"}
            spans += [
                span("s", "c", "server", "shop", False, (start + 100, start + 850), trace, **asked),
                span("p", "s", "client", "shop", hit, ends, trace, point=PRICES, **shown),
            ]
        answer = {"error_type": "ConnectionResetError"} if dead or not up else {"status": "200"}
        good = self.shop.caught or (up and not dead)
        url = {"method": "GET", "url": f"http://web{path}"}
        spans += [
            span("r", None, "server", "web", not good, at, trace, **url, **served),
            span("c", "r", "client", "web", dead or not up, at, trace, point=SHOP, **answer),
        ]
        self.engine.receive_spans(spans, now)
        self.engine.receive_outcomes([Outcome(trace, device, "", good, duration=0.1)], now)


@pytest.fixture
def street() -> Iterator[Street]:
    db = Database("sqlite://")
    world = Street(db, {"/page": lambda _caller: None})
    world.shop = Shop()
    yield world
    db.close()


def rows(world: World) -> list[ExperimentRow]:
    with world.database.read() as session:
        query = select(ExperimentRow).order_by(ExperimentRow.created_at)
        return [row for row in session.scalars(query) if PRICES in str(row.faults)]


def run(world: Street, classes: tuple[str, ...] = ()) -> Campaign:
    campaign = world.start(QUICK, classes=classes)
    for _ in range(1000):
        if not campaign.live():
            return campaign
        world.step(requests=4)
    raise AssertionError(campaign.waiting)


@pytest.mark.parametrize("paths", [("/page",), ("/page", "/list")], ids=["one class", "two"])
@pytest.mark.parametrize("caught", [False, True], ids=["devices see it", "a fallback hides it"])
def test_one_suspicion_and_one_death(street: Street, caught: bool, paths: tuple[str, ...]) -> None:
    street.shop.caught = caught
    street.programs = dict.fromkeys(paths, street.programs["/page"])

    campaign = run(street)

    (row,) = rows(street)
    assert len(street.shop.deaths) == 1
    assert street.findings() == {KILLED: "killed"}
    why = "killed the process: shop told of nothing after the fault was about to fire"
    assert (row.verdict, row.reason) == ("inconclusive", why)
    assert campaign.ending is not None
    assert f"killed the process: {len(paths)}" in campaign.ending.reason
    with street.database.read() as session:
        told = [
            each.document["title"]
            for each in session.scalars(select(NotificationRow))
            if each.document["details"].get("state") == "killed"
        ]
    assert told == [f"killed the process: {row.request_class}"]


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        pytest.param({"dies": False}, "tolerated", id="nobody dies"),
        pytest.param({"dies": False, "deploys": range(1000, 1100, 3)}, "tolerated", id="deploys"),
        pytest.param({"dies": False, "loses": (1000.0, 1030.0)}, None, id="batches are lost"),
    ],
)
def test_who_is_replaced_is_not_killed(
    street: Street, change: dict[str, object], verdict: str | None
) -> None:
    street.shop.dies = bool(change["dies"])
    street.deploys = tuple(map(float, change.get("deploys", ())))  # type: ignore[call-overload]
    street.loses = change.get("loses", street.loses)  # type: ignore[assignment]

    run(street)

    assert "killed" not in street.findings().values()
    assert rows(street)
    assert verdict is None or {row.verdict for row in rows(street)} == {verdict}


def test_nobody_tries_it_again_but_a_person(street: Street) -> None:
    # Given a campaign that has killed a process
    run(street)
    (first,) = rows(street)
    assert len(street.shop.deaths) == 1

    # When others follow, and whoever ran it is replaced
    street.engine = Engine(street.database, now=street.now)
    run(street)

    # Then none of them tries it
    assert [row.id for row in rows(street)] == [first.id]
    assert len(street.shop.deaths) == 1

    # But who is asked by a person does: once, and it kills again
    asked = Definition(QUICK, hypotheses=(frozenset(KILLED),))
    _finished(street, asked)
    assert len(street.shop.deaths) == 2
    assert street.findings()[KILLED] == "killed"

    # And once it is mended that is said, and all others may try it
    street.shop.dies = False
    _finished(street, asked)
    assert street.findings()[KILLED] == "fixed"
    before = len(rows(street))
    run(street)
    assert len(rows(street)) > before


def _finished(street: Street, definition: Definition) -> None:
    campaign = street.engine.scheduler.commands.start(definition, "kim", street.now)
    for _ in range(300):
        if not campaign.live():
            return
        street.step(requests=4)
    raise AssertionError(campaign.waiting)
