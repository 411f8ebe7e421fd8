"""Several namespaces beside each other: what they share, and what each has for itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import copyfile
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from ldfi.errors import Halted
from ldfi.experiments.domain.campaign.campaign import Campaign, Definition
from ldfi.experiments.domain.gates.guard_facts import Facts
from ldfi.experiments.domain.settings import Limits, Settings
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.scheduler.global_controls import GlobalControls
from ldfi.experiments.store import arming, campaigns, experiments
from ldfi.experiments.store.arming import Armed, Order, Refused
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import AuditRow, CampaignRow, ExperimentRow
from ldfi.fit.protocol.allocation import mark_of
from ldfi.fit.protocol.rules import Lease, read_lease
from ldfi.testing.programs import Call, Step
from ldfi.testing.world import START, World
from tests.experiments.simulated import BOOT
from tests.kit.campaigns import SWIFT, an_experiment

NAMES: Final = ("", "checkout", "search")
DAY: Final = arming.DAY
STARS, LAYOUT = (Call(f"api>http:GET:{each}") for each in ("ratings/stars", "layout/screens"))
PROGRAM: Final = Call("root", (Step("optional", (STARS,)), Step("critical", (LAYOUT,))))
QUICK: Final = replace(SWIFT, treatment=0.2, control=0.2, rechecks=0)


@dataclass
class Installation:
    """A store of each namespace, and what is above it."""

    limits: Limits = field(default_factory=Limits)
    stores: dict[str, Database] = field(default_factory=dict)
    engines: dict[str, Engine] = field(default_factory=dict)

    def global_controls(self, name: str) -> GlobalControls:
        default = self.engines.get("")

        def others() -> list[Database]:
            return [store for other, store in self.stores.items() if other != name]

        if not name:
            return GlobalControls(others=others, limits=self.limits)
        return GlobalControls(
            halted=lambda: default.scheduler.state.halted if default is not None else None,
            default=self.stores[""],
            others=others,
            limits=self.limits,
        )

    def world(self, name: str) -> World:
        """One namespace at work: a program of its own, and the same devices as all others."""
        above = self.global_controls(name)
        engine = Engine(self.stores[name], now=START, limits=self.limits, global_controls=above)
        self.engines[name] = engine
        return World(self.stores[name], {"/boot": PROGRAM}, engine=engine)


@contextmanager
def opened(folder: Path) -> Iterator[dict[str, Database]]:
    """The stores of all, as they are on a disk: one is read while another one is written to."""
    first = folder / "first.sqlite3"
    Database(f"sqlite:///{first}").close()
    with ExitStack() as stack:
        found = {}
        for name in NAMES:
            file = folder / f"ldfi.{name}.sqlite3"
            copyfile(first, file)  # migrating once is enough
            found[name] = Database(f"sqlite:///{file}", namespace=name)
            stack.callback(found[name].close)
        yield found


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Database]]:
    with opened(tmp_path_factory.mktemp("stores")) as found:
        yield found


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    with opened(tmp_path) as found:
        yield Installation(stores=found)


def an_order(name: str, members: int, now: float) -> Order:
    wanted = Settings(members=members, member_budget=10**6)
    more: dict[str, Any] = {"predicate": BOOT, "settings": wanted, "created_at": now}
    experiment = an_experiment(name, f"GET /{name}", "api>http:GET:titles/x", **more)
    return Order(experiment, "c", 1, now + 10, Facts())


Act = tuple[str, int, float, float]
"""In which namespace so many members are asked for, the share that is used, seconds until then."""
ACTS: Final = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.integers(12, 60),
        st.sampled_from([0.0, 0.5, 1.0]),
        st.sampled_from([1.0, 600.0, 3_000.0, 30_000.0]),
    ),
    min_size=3,
    max_size=14,
)
_TURN: Final = iter(range(1, 10_000))


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(acts=ACTS, of_all=st.integers(20, 150), own=st.integers(20, 150))
def test_neither_the_limits_of_all_nor_those_of_one_are_ever_exceeded(
    stores: Mapping[str, Database], acts: list[Act], of_all: int, own: int
) -> None:
    turn = next(_TURN)
    now = 1e6 + turn * 10 * DAY  # what was before does not count any more
    limits = Limits(max_concurrent=2, members_per_hour=of_all, members_per_day=2 * of_all)
    here = Installation(limits, dict(stores))
    mine = {
        name: replace(limits, members_per_hour=own, members_per_day=own) if name else limits
        for name in NAMES
    }
    armed: dict[str, list[tuple[float, int]]] = {name: [] for name in NAMES}
    _campaigns(stores, now)
    going: list[tuple[str, Order, int]] = []
    for number, (name, members, share, seconds) in enumerate(acts):
        order = an_order(f"e{turn}-{number}", members, now)
        answer = here.global_controls(name).arm(stores[name], order, mine[name], now)
        if isinstance(answer, Armed):
            going.append((name, order, int(answer.members * share)))
            assert len(going) <= limits.max_concurrent
        for each, allowed in ((n, mine[n]) for n in NAMES):
            hour, day = _charged(stores[each], now)
            armed[each].append((hour, day))
            assert hour <= allowed.members_per_hour
            assert day <= allowed.members_per_day
        assert sum(armed[n][-1][0] for n in NAMES) <= limits.members_per_hour
        assert sum(armed[n][-1][1] for n in NAMES) <= limits.members_per_day
        now += seconds
        if len(going) == limits.max_concurrent:
            _end(stores, *going.pop(0), now)
    for left in going:
        _end(stores, *left, now)


def test_what_is_left_of_the_limits_of_all_may_be_used(stores: Mapping[str, Database]) -> None:
    """Or a limit of nothing would pass the test above."""
    now = 1e6 + next(_TURN) * 10 * DAY
    limits = Limits(max_concurrent=9, members_per_hour=50, members_per_day=60)
    here = Installation(limits, dict(stores))
    _campaigns(stores, now)

    def arm(name: str, members: int, own: Limits = limits) -> Armed | Refused:
        order = an_order(f"{name}{next(_TURN)}", members, now)
        return here.global_controls(name).arm(stores[name], order, own, now)

    assert arm("checkout", 20) == Armed(20, ())
    second = arm("search", 25)
    assert isinstance(second, Armed)
    assert second.members == 25
    said = "budget spent: 5 members are left of the budget of all namespaces of the last hour"
    assert arm("", 30) == Refused(said, spent=True)
    busy = arm("search", 20, replace(limits, max_concurrent=1))
    assert isinstance(busy, Refused)
    assert busy.reason == "1 experiments run already, at most 1 may"


def _campaigns(stores: Mapping[str, Database], now: float) -> None:
    for store in stores.values():
        campaign = Campaign("c", Definition(), lambda: "x")
        campaign.state = "running"
        with store.change(now) as change:
            if change.session.get(CampaignRow, "c") is None:
                campaigns.create(change, campaign)
            for row in change.session.scalars(
                select(ExperimentRow).where(ExperimentRow.ended_at.is_(None))
            ):
                row.state, row.active_class, row.ended_at = "aborted", None, now - 9 * DAY


def _charged(store: Database, now: float) -> tuple[int, int]:
    with store.read() as session:
        hour = arming.charged_within(session, arming.HOUR, now)
        return hour, arming.charged_within(session, DAY, now)


def _end(stores: Mapping[str, Database], name: str, order: Order, spent: int, now: float) -> None:
    order.experiment.arm(now)
    order.experiment.abort("over", now)
    assert order.experiment.settle(now + arming.HOUR, disarmed=True)
    with stores[name].change(now) as change:
        experiments.end(change, order.experiment, spent, None)


def test_others_are_told_a_salt_and_no_id(stores: Mapping[str, Database]) -> None:
    now = 1e6 + next(_TURN) * 10 * DAY
    here = Installation(Limits(), dict(stores))
    _campaigns(stores, now)

    def arm(namespace: str, name: str) -> Armed:
        order, store = an_order(name, 20, now), stores[namespace]
        answer = here.global_controls(namespace).arm(store, order, Limits(), now)
        assert isinstance(answer, Armed)
        return answer

    first, second = arm("checkout", "first"), arm("", "second")
    assert [claim.salt for claim in second.yields_to] == [first.salt]
    assert first.salt != "first"


# --- Engines beside each other -----------------------------------------------------------------


def test_a_halt_stops_its_own_and_that_of_the_default_one_all(installation: Installation) -> None:
    worlds = {name: installation.world(name) for name in NAMES}
    for world in worlds.values():
        world.start(QUICK)

    def armed() -> set[str]:
        seen = set()
        for _ in range(12):
            for name, world in worlds.items():
                world.step(requests=40)
                if world.rules():
                    seen.add(name)
            if seen == set(NAMES):
                break
        return seen

    def switch(name: str, *, halts: bool) -> None:
        switch = worlds[name].engine.scheduler.switch
        if halts:
            switch.halt(f"of {name}", "kim", worlds[name].now)
        else:
            switch.resume("kim", worlds[name].now)

    assert armed() == set(NAMES)
    switch("checkout", halts=True)
    assert not worlds["checkout"].rules()
    assert armed() == {"", "search"}
    # The default one halts all, at the next step of each, and is the only one to lift that
    switch("", halts=True)
    for world in worlds.values():
        world.engine.tick(world.now)
        assert not world.rules()
    with pytest.raises(Halted):
        worlds["search"].start(QUICK)
    switch("checkout", halts=False)
    switch("search", halts=False)
    assert armed() == set()
    switch("", halts=False)
    assert armed() == set(NAMES)
    # And what a namespace has on record says nothing of the others
    for name in NAMES:
        with installation.stores[name].read() as session:
            said = set(session.scalars(select(AuditRow.why).where(AuditRow.what == "halt")))
        assert said == ({f"of {name}"} if name != "search" else set())


def test_levels_are_tested_at_for_each_by_itself(installation: Installation) -> None:
    alone = World.in_memory({"/boot": PROGRAM})
    with alone as world:
        world.finish(world.start(QUICK))
        expected = _levels(world)
    assert expected

    both = {name: installation.world(name) for name in ("", "checkout")}
    quiet = installation.world("search")
    begun = {name: world.start(QUICK) for name, world in both.items()}
    for _ in range(600):
        for name, world in both.items():
            if begun[name].live():
                world.step()
    for name, world in both.items():
        assert not begun[name].live(), begun[name].waiting
        fdr = world.engine.scheduler.state.fdr
        assert fdr.tested == len([each for each in _levels(world) if each < 1])
        assert _levels(world)[0] == expected[0]  # the second stream begins anew
        again = Engine(world.database, now=world.now).scheduler.state.fdr
        assert (again.tested, again.discoveries) == (fdr.tested, fdr.discoveries)
    assert quiet.engine.scheduler.state.fdr.tested == 0


def _levels(world: World) -> list[float]:
    with world.database.read() as session:
        rows = session.scalars(
            select(ExperimentRow.level)
            .where(ExperimentRow.armed_at.is_not(None))
            .order_by(ExperimentRow.armed_at, ExperimentRow.id)
        )
        return [each for each in rows if each is not None]


def test_a_device_is_in_one_experiment_over_all_namespaces(installation: Installation) -> None:
    worlds = {name: installation.world(name) for name in NAMES}
    for world in worlds.values():
        world.start(QUICK)
    together = clashes = 0
    for _ in range(12):
        for world in worlds.values():
            world.step(requests=40)
        leases = [_lease(world) for world in worlds.values()]
        together += sum(bool(lease.rules) for lease in leases) > 1
        for number in range(1_000):
            mark = mark_of(f"d{number}")
            claims = [claim for lease in leases for claim in lease.claims(mark)]
            arms = [arm for _, arm in claims]
            assert arms.count("treatment") <= 1
            assert "treatment" not in arms or len(arms) == 1
            bare = [rule.claim.arm_of(mark) for lease in leases for rule in lease.rules]
            clashes += bare.count("treatment") > 1
    assert together > 2
    assert clashes > 100, "nothing would have happened, had they not yielded to each other"


def _lease(world: World) -> Lease:
    """What a real edge reads of what it is told."""
    return read_lease(world.engine.board.lease("edge0", world.now), 0.0)
