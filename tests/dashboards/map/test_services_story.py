"""The map: held against programs that are asked themselves, and drawn so that it can be read."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ldfi.analysis.repairs.request_names import Called
from ldfi.dashboards.map.services_layout import BOX, Layout, Placed, layout
from ldfi.dashboards.map.services_story import Looked, ServiceMap, service_map
from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.injectors import Injectors
from ldfi.experiments.store.schema import FindingRow
from ldfi.fit.protocol.reach import InjectorReport, PointPattern
from ldfi.testing.programs import Call, Run, Step, points_of
from tests.dashboards.browser import large
from tests.experiments.domain.campaign.test_exploration import Lab
from tests.experiments.simulated import Application, explore, serving, traffic_of
from tests.lineage.drawn import programs

NO_INJECTORS = Injectors()
LEDGER = Call("prices>db:SELECT:ledger/prices")
PRICES = Call("web>http:GET:prices/now", (Step("critical", (LEDGER,)),))
SHOP = Call(
    "root",
    (
        Step("critical", (Call("web>http:GET:stock/items"),)),
        Step("fallback", (PRICES, Call("web>cache:get:old"))),
        Step("optional", (Call("web>http:GET:reviews/newest"),)),
    ),
)
BOUNDS = Settings(kinds=("error",), min_traffic=5, rechecks=0)


def explored(program: Call = SHOP) -> Knowledge:
    (exploration,) = explore(serving(program), BOUNDS).explorations.values()
    return exploration.knowledge


def standings(drawn: ServiceMap) -> dict[str, str]:
    return {each.name: each.standing for each in drawn.services}


def finding(faults: list[str], state: str = "open") -> FindingRow:
    return FindingRow(id="f", request_class="GET /", faults=faults, state=state, found_at=1.0)


PAIR = finding(["error@web>http:GET:prices/now", "error@web>cache:get:old"])


def test_each_service_stands_as_what_was_found_of_it() -> None:
    drawn = service_map([Looked(explored(), 1.0)], [PAIR], NO_INJECTORS)

    assert standings(drawn) == {
        "stock": "hurts",
        "prices": "together",
        "old": "together",
        "reviews": "survived",
        "ledger": "survived",
        "web": "entry",
    }
    said = {each.name: each.said for each in drawn.services}
    assert said["stock"] == "means that GET / is lost"
    assert said["prices"] == "hurts only if old fails too"
    assert drawn.title == "6 services: 1 can hurt users alone"


def test_a_slow_answer_that_hurts_is_a_weakness_of_the_service() -> None:
    slow = finding(["delay@web>http:GET:reviews/newest"])
    drawn = service_map([Looked(explored(), 1.0)], [slow], NO_INJECTORS)
    (reviews,) = (each for each in drawn.services if each.name == "reviews")
    assert (reviews.standing, reviews.said) == (
        "hurts",
        "means that GET / is lost when it is slow",
    )
    fixed = finding(["delay@web>http:GET:reviews/newest"], "fixed")
    assert standings(service_map([Looked(explored(), 1.0)], [fixed], NO_INJECTORS))["reviews"] == (
        "survived"
    )


def test_what_no_injector_reaches_is_told_from_what_nobody_tried() -> None:
    knowledge = Knowledge("GET /", BOUNDS, traffic_of(Application(serving(SHOP)), 5))
    drawn = service_map([Looked(knowledge, 1.0)], [], NO_INJECTORS)
    assert standings(drawn)["stock"] == standings(drawn)["reviews"] == "untried"
    reports = Injectors()
    only = PointPattern.parse("web>http:GET:stock/*")
    reports.hear(InjectorReport("python/1", (only,)), 1.0)
    drawn = service_map([Looked(knowledge, 1.0)], [], reports)
    assert standings(drawn)["stock"] == "untried"
    assert standings(drawn)["reviews"] == "unreached"


def test_what_goes_down_is_told_apart_from_what_is_lost_and_what_holds() -> None:
    shop = Looked(explored(), 0.7)
    other = Knowledge("GET /else", BOUNDS, traffic_of(Application(serving(ELSE)), 5))

    lost = service_map([shop, Looked(other, 0.3)], [PAIR], NO_INJECTORS, ("stock",))
    assert {mapped.name: mapped.fate for mapped in lost.classes} == {
        "GET /": "lost",
        "GET /else": "holds",
    }
    assert standings(lost)["prices"] == standings(lost)["reviews"] == "lost"
    assert standings(lost)["stock"] == "down"
    assert lost.title == "If stock is down"
    assert lost.verdict == "GET / would be lost"

    near = service_map([shop], [PAIR], NO_INJECTORS, ("prices",))
    (mapped,) = near.classes
    assert (mapped.fate, mapped.near, mapped.always) == ("near", ("old",), ("stock",))
    assert standings(near)["old"] == standings(near)["stock"] == "together"
    assert standings(near)["reviews"] == "survived"


ELSE = Call("root", (Step("optional", (Call("web>http:GET:adverts/now"),)),))


@given(programs(points=5), st.integers(0, 50), st.integers(0, 30), st.data())
def test_nothing_that_the_map_says_is_wrong(
    program: Call, seed: int, steps: int, data: st.DataObject
) -> None:
    # Given what was learned of a program, up to some experiment or other
    points = points_of(program)
    assume(points)
    assume(Run(frozenset()).execute(program).good)
    lab = Lab(serving(program), Settings(kinds=("error",), seed=seed, min_traffic=5))
    for _ in range(steps):
        plan = lab.exploration.plan()
        if plan is None:
            break
        lab.carry_out(plan)
    knowledge = lab.exploration.knowledge
    # and each point reaching a service of its own, or sharing one
    knowledge.traffic.topology.callees.update(
        {point: data.draw(st.sampled_from(["s1", "s2", "s3"])) for point in knowledge.points}
    )
    down = data.draw(st.sets(st.sampled_from(["s1", "s2", "s3"]), max_size=2))

    drawn = service_map([Looked(knowledge, 1.0)], [], NO_INJECTORS, sorted(down))

    def survives(*systems: str) -> bool:
        callees = knowledge.traffic.topology.callees
        failing = {f"error@{p}" for p in knowledge.points if callees[p] in systems}
        return Run(frozenset(failing)).execute(program).good

    for mapped in drawn.classes:
        if mapped.fate in {"lost", "near"} or (mapped.fate == "holds" and mapped.failing):
            assert survives(*down) == (mapped.fate != "lost")
    hurting = {each.name for each in drawn.services if each.standing in {"hurts", "together"}}
    assert hurting <= {each.what.name for each in legible(drawn.only_hurting(12, 8)).services}
    for each in drawn.services:
        if each.standing in {"hurts", "together"}:
            assert not survives(*down, each.name)
        elif each.standing == "survived":
            assert survives(*down, each.name)
        elif each.standing == "lost":
            assert not survives(*down)


def test_nothing_is_drawn_over_anything_else() -> None:
    for program in (SHOP, large.program()):
        traffic = traffic_of(Application(serving(program)), 3)
        knowledge = Knowledge("GET /", BOUNDS, traffic)
        again = Knowledge("GET /again", BOUNDS, traffic)
        drawn = service_map([Looked(knowledge, 0.6), Looked(again, 0.4)], [], NO_INJECTORS)
        placed = legible(drawn)
        assert len(placed.lines) == len(drawn.calls)


def legible(drawn: ServiceMap) -> Layout:
    """Draw it: every service has its place, within the picture and over nothing else."""
    placed = layout(drawn)
    boxes: list[Placed[Any]] = [*placed.classes, *placed.bars, *placed.services]
    assert {each.what.name for each in boxes} >= {each.name for each in drawn.services}
    for one, other in itertools.combinations(boxes, 2):
        apart = (
            one.x + one.width <= other.x
            or other.x + other.width <= one.x
            or one.y + one.height <= other.y
            or other.y + other.height <= one.y
        )
        assert apart, (one, other)
    for each in boxes:
        assert each.height >= BOX
        assert each.x > 0 and each.x + each.width <= placed.width
        assert each.y > 0 and each.y + each.height <= placed.height
    return placed


@pytest.mark.parametrize("services", [60, 90])
def test_sixty_services_and_more_are_drawn_in_layers(services: int) -> None:
    program = large.program(services, 2 * services)
    knowledge = Knowledge("GET /", BOUNDS, traffic_of(Application(serving(program)), 3))
    deepest = f"service-{services - 2:02}"
    (caller,) = (p for p in knowledge.points if f"GET:{deepest}/" in p)
    hurts = finding([f"error@{caller}"])
    drawn = service_map([Looked(knowledge, 1.0)], [hurts], NO_INJECTORS)
    assert len([each for each in drawn.services if each.name.startswith("service-")]) == services

    placed = legible(drawn)
    assert len(placed.lines) == len(drawn.calls)
    left = {each.what.name: each.x for each in [*placed.bars, *placed.services]}
    for call in drawn.calls:
        assert left[call.above] < left[call.below], call

    folded = drawn.only_hurting(12, 8)
    names = {each.name for each in folded.services}
    assert deepest in names and "edge" in names
    assert len(names) < services / 4
    closed = legible(folded)
    assert closed.height < placed.height / 2
    assert {each.call.below for each in closed.lines} >= {deepest}


def ledger_of(services: int) -> Call:
    """Each service asks one ledger, and the two services below it."""

    def steps(number: int) -> tuple[Step, ...]:
        name = f"service-{number:02}"
        below = range(2 * number + 1, min(2 * number + 3, services))
        calls = [Call(f"{name}>http:GET:service-{each:02}/x", steps(each)) for each in below]
        ledger = Call(f"{name}>db:SELECT:ledger/rows")
        return tuple(Step("optional", (each,)) for each in (ledger, *calls))

    return Call("root", (Step("optional", (Call("edge>http:GET:service-00/x", steps(0)),)),))


def test_of_what_everybody_calls_one_way_is_drawn() -> None:
    looked = [
        Looked(Knowledge("GET /", BOUNDS, traffic_of(Application(serving(ledger_of(60))), 3)), 1.0)
    ]
    looked += [
        Looked(Knowledge(f"GET /{n}", BOUNDS, traffic_of(Application(serving(ELSE)), 3)), 0.0)
        for n in range(4)
    ]
    for caller, way in (("00", {"00"}), ("33", {"00", "01", "03", "07", "16", "33"})):
        row = finding([f"error@service-{caller}>db:SELECT:ledger/rows"])
        whole = service_map(looked, [row], NO_INJECTORS)
        assert len(whole.services) == 64  # with the ledger, adverts, and where both come in

        drawn = whole.only_hurting(12, 8)
        names = {"edge", "ledger", *(f"service-{each}" for each in way)}
        assert set(standings(drawn)) == names
        assert [each.name for each in drawn.classes] == ["GET /"]
        legible(drawn)
        down = service_map(looked, [row], NO_INJECTORS, ("ledger", "adverts")).only_hurting(12, 8)
        assert set(standings(down)) == names | {"adverts", "web"}
        legible(down)


def test_services_that_call_one_another_in_a_circle_are_drawn() -> None:
    back = Call("b>http:GET:a/y")
    circle = Call(
        "root", (Step("critical", (Call("a>http:GET:b/x", (Step("critical", (back,)),)),)),)
    )
    knowledge = Knowledge("GET /", BOUNDS, traffic_of(Application(serving(circle)), 3))
    drawn = service_map([Looked(knowledge, 1.0)], [], NO_INJECTORS)
    placed = layout(drawn)
    assert {each.what.name for each in [*placed.bars, *placed.services]} == {"a", "b"}
    assert len(placed.lines) == 2


def test_only_what_hurts_keeps_what_leads_to_it() -> None:
    ledger = finding(["error@prices>db:SELECT:ledger/prices"])
    drawn = service_map([Looked(explored(), 1.0)], [ledger], NO_INJECTORS).only_hurting(12, 8)
    assert set(standings(drawn)) == {"stock", "ledger", "prices", "web"}


def test_what_would_be_lost_is_said_as_people_call_it() -> None:
    name = explored().name
    called = Called({name: "Shopping"}, {name: "nobody can buy"})
    drawn = service_map([Looked(explored(), 1.0)], [PAIR], NO_INJECTORS, ("stock",), called)
    assert drawn.verdict == "Shopping would be lost"
    up = service_map([Looked(explored(), 1.0)], [PAIR], NO_INJECTORS, (), called)
    assert up.by_standing["hurts"][0].said == "means that nobody can buy"
