"""Every guard of the table, tripped in a real engine: nothing is armed, and what is armed ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from ldfi.experiments.domain.campaign.calendar import Blackout, Calendar
from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.gates.guards import GUARDS, Guard
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.traffic.baseline import Spell
from ldfi.experiments.domain.traffic.observation import Outcome
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import CampaignRow
from ldfi.testing.spans import span
from ldfi.testing.world import QUICK, Fate, World
from tests.kit.campaigns import an_experiment, start
from tests.kit.rows import experiment_row

FREEZE = Calendar(blackouts=(Blackout("1970-01-01", "1970-01-02", "freeze"),))


@dataclass
class Scene:
    """A campaign that would arm something soon."""

    database: Database
    world: World
    campaign: Campaign


Trip = Callable[[Scene], None]


def halted(scene: Scene) -> None:
    scene.world.engine.scheduler.switch.halt("release", "ann", scene.world.now)


def breached(scene: Scene) -> None:
    scene.world.engine.scheduler.state.breach = "guardrail does not hold: errors < 5"


def frozen(scene: Scene) -> None:
    scene.campaign.definition = replace(scene.campaign.definition, calendar=FREEZE)


def edges_gone(scene: Scene) -> None:
    for edge in scene.world.edges:
        edge.cut_off = True
    scene.world.now += 30


def paused_elsewhere(scene: Scene) -> None:
    with scene.database.change(scene.world.now) as change:
        change.session.get_one(CampaignRow, scene.campaign.id).state = "paused"


def in_maintenance(scene: Scene) -> None:
    now = scene.world.now
    window = Maintenance("m1", "ann", "upgrade", ("layout",), now, now + 3_600)
    scene.world.engine.scheduler.commands.open_maintenance(window, "ann", now)


def failing(scene: Scene) -> None:
    world = scene.world
    for number in range(200):
        trace_id = f"{10_000_000 + number:032x}"
        root = span(
            "root", kind="server", trace=trace_id, failed=True, method="GET", url="http://api/boot"
        )
        world.engine.receive_spans([root], world.now)
        world.engine.receive_outcomes([Outcome(trace_id, f"x{number}", "", False)], world.now)
    world.now += 1
    world.engine.tick(world.now)  # the traces are whole now


def beside(scene: Scene, *, disarmed_at: float) -> Experiment:
    """An experiment that somebody else's campaign had on what the class reaches."""
    theirs = an_experiment("theirs", "GET /elsewhere", "layout")
    theirs.bystanders.systems = frozenset({"layout"})
    theirs.state, theirs.armed_at, theirs.ended_at = "decided", disarmed_at - 1, disarmed_at
    theirs.disarmed_at = disarmed_at
    scene.world.engine.scheduler.state.nearby.experiments.append(theirs)
    return theirs


def hurting(scene: Scene) -> None:
    """Users fail who are not injected into, and go on failing."""
    near = [*scene.world.engine.scheduler.state.nearby.experiments]
    near = near or [beside(scene, disarmed_at=scene.world.now - 10)]
    for experiment in near:
        experiment.bystanders.newest = deque(maxlen=1_000)  # no end of it within the test
        experiment.bystanders.note("GET /elsewhere", Spell(0, 200))
        for number in range(20):
            experiment.bystanders.add("GET /elsewhere", f"x{number}", success=False, reached=False)


def just_ended(scene: Scene) -> None:
    beside(scene, disarmed_at=scene.world.now + 9)  # so that it stays so for the whole test


def another_is_armed(scene: Scene) -> None:
    """Somebody was hurt, and is well again; and one is armed that reaches the same."""
    hurt = beside(scene, disarmed_at=scene.world.now - 60)
    hurt.bystanders.hurt = "9 of 31 requests failed"
    hurt.bystanders.newest.extend([True] * 20)
    running = beside(scene, disarmed_at=scene.world.now)
    running.state, running.disarmed_at, running.ended_at = "armed", None, None


def unheard(scene: Scene) -> None:
    """It has had traffic enough, but of late no device says how it went."""
    catalogue = scene.world.engine.catalogue
    for known in catalogue.classes.values():
        known.traffic.good = 1_000
    catalogue.observe = lambda *_, **__: None  # type: ignore[method-assign]
    scene.world.now += 700


def sampled(scene: Scene) -> None:
    """One device in ten reports."""
    for known in scene.world.engine.catalogue.classes.values():
        for _ in range(900):
            known.traffic.reporting.arrive(scene.world.now)
        for _ in range(90):
            known.traffic.reporting.report(scene.world.now)


def limited(**bounds: object) -> Trip:
    def trip(scene: Scene) -> None:
        state = scene.world.engine.scheduler.state
        state.limits = replace(state.limits, **bounds)  # type: ignore[arg-type]

    return trip


def armed_elsewhere(request_class: str) -> Trip:
    """Another scheduler has armed something."""

    def trip(scene: Scene) -> None:
        with scene.database.change(scene.world.now) as change:
            now = scene.world.now
            of = {"campaign_id": scene.campaign.id, "run": 1, "state": "armed"}
            of |= {"request_class": request_class, "active_class": request_class}
            of |= {"created_at": now, "armed_at": now, "lease_until": now + 3_600}
            of |= {"allocation": {"salt": "theirs", "treatment": 0.1, "control": 0.1}}
            change.session.add(experiment_row("theirs", (), **of))

    return trip


def one_at_a_time(scene: Scene) -> None:
    limited(max_concurrent=1)(scene)
    armed_elsewhere("GET /elsewhere")(scene)


protected, spent = limited(protected_classes=("* /boot",)), limited(members_per_hour=5)
armed_here = armed_elsewhere("GET /boot")
HURT, UNKNOWN = "bystanders were hurt lately", "steady state is not known:"


TRIPS: dict[str, tuple[Trip, str]] = {
    "kill switch": (halted, "halted: release"),
    "guardrails": (breached, "guardrail does not hold: errors < 5"),
    "calendar": (frozen, "blackout until 1970-01-02 (UTC): freeze"),
    "edges": (edges_gone, "no edge asks for rules"),
    "campaign": (paused_elsewhere, "the campaign does not run: it is paused"),
    "maintenance windows": (in_maintenance, "maintenance of layout by ann: upgrade"),
    "protected classes": (protected, "the class is protected: GET /boot"),
    "bystanders": (hurting, "bystanders are hurt: "),
    "cool-down": (just_ended, "an experiment on the same service or system has just ended: theirs"),
    "one at a time": (another_is_armed, f"{HURT}, so experiments run one at a time: theirs"),
    "recent outcomes": (unheard, f"{UNKNOWN} 0 outcomes came in the last 10 minutes"),
    "reports": (sampled, "of 8"),
    "steady state": (failing, "steady state does not hold:"),
    "concurrency": (one_at_a_time, "1 experiments run already, at most 1 may"),
    "one experiment a class": (armed_here, "another experiment runs on this class: theirs"),
    "budgets": (spent, "budget spent: 5 members are left of the budget of the last hour"),
}
"""How each is tripped while everything else is well, and what a campaign says that waits for it."""


@pytest.fixture
def scene(database: Database) -> Scene:
    world = World(database)
    campaign = start(world)
    world.step()  # not enough traffic to begin
    return Scene(database, world, campaign)


def test_every_guard_is_tripped_here() -> None:
    assert list(TRIPS) == [guard.name for guard in GUARDS]


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guard_lets_nothing_be_armed_and_campaigns_say_why(scene: Scene, guard: Guard) -> None:
    world, (trip, words) = scene.world, TRIPS[guard.name]
    trip(scene)
    for _ in range(8):
        world.step(requests=3)  # few, or they would mend the steady state
        assert not world.rules()

    (told,) = [each for each in scene.campaign.waiting.values() if "good requests" not in each]
    assert told.startswith(words)


def test_without_any_trip_it_would_have_been_armed(scene: Scene) -> None:
    """Or the tests above would be worth nothing."""
    armed = list[str]()
    for _ in range(8):
        scene.world.step(requests=3)
        armed += scene.world.rules()  # at the last step one may just have ended
    assert armed


@pytest.mark.parametrize(
    "guard", [guard for guard in GUARDS if guard.armed], ids=lambda guard: guard.name
)
def test_what_is_armed_is_disarmed_within_a_step(scene: Scene, guard: Guard) -> None:
    world = scene.world
    world.until_armed()
    (experiment,) = scene.campaign.active()

    TRIPS[guard.name][0](scene)
    world.engine.tick(world.now + 0.05)

    assert not world.rules()
    for _ in range(12):
        world.step(requests=3)
    assert experiment.state == "aborted"
    facts = world.engine.scheduler.state.facts_of(scene.campaign, experiment, world.now)
    assert guard.why_not(facts) is not None
    assert not world.rules()


def test_what_was_approved_is_not_armed_without_a_steady_state(database: Database) -> None:
    world = World(database)
    campaign = start(world, replace(QUICK, approve_above=0.0))
    world.steps(10)
    (waiting,) = campaign.running.values()
    assert waiting.state == "waiting"
    # When its class fails by itself before somebody approves it
    failing(Scene(database, world, campaign))
    world.engine.scheduler.commands.approve(waiting.id, "ann", world.now)
    # Then it is not armed, not even for a moment
    for _ in range(4):
        world.now += 0.1
        world.engine.tick(world.now)
        assert waiting.armed_at is None
    # And it is as soon as the class is well
    world.until_armed()
    assert world.rules() == [waiting.id]


def test_a_class_that_fails_by_itself_is_tried_where_the_campaign_asks_for_less() -> None:
    def befalls(device: str, _arm: object, _now: float) -> Fate:
        return Fate(fails=int(device[1:]) % 5 == 0)

    with World.in_memory(noise=befalls) as world:
        strict = world.start(QUICK)
        world.steps(10)
        assert strict.waiting == {"GET /boot": "steady state does not hold: 80% succeed"}
        assert not world.rules()
        world.start(replace(QUICK, steady=0.7))
        world.until_armed()
