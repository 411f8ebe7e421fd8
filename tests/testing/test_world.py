"""The world that users get: applications as functions, and the service's own way with them."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from itertools import combinations

import pytest

from ldfi.experiments.domain.settings import Limits
from ldfi.fit.protocol.native_kinds import native
from ldfi.testing.programs import PATIENCE, Run, points_of
from ldfi.testing.world import FOUND, PROGRAM, QUICK, Call, Caller, CallFailed, Fate, Step, World


def boot(request: Caller) -> None:
    """What PROGRAM declares."""
    with suppress(CallFailed):
        request.call("ratings")
    try:
        request.call("playlist")
    except CallFailed:
        request.call("popular")
    request.call("layout")


def test_a_function_is_found_out_as_the_declared_program_is() -> None:
    with World.in_memory({"/boot": boot}, edges=2) as world:
        campaign = world.start(QUICK)
        world.finish(campaign)
        assert world.findings() == dict.fromkeys(FOUND, "open")
        assert world.rules() == []


@pytest.mark.parametrize("armed", [(), ("layout",), ("playlist",), ("playlist", "popular")])
def test_a_function_leaves_the_spans_of_the_declared_program(armed: tuple[str, ...]) -> None:
    faults = frozenset(f"error@{point}" for point in armed)
    written, declared = Run(faults), Run(faults)
    written.execute(Call("root", does=boot))
    declared.execute(PROGRAM)
    assert written.spans == declared.spans
    assert written.good is declared.good


def test_callees_may_be_functions_and_callers_impatient() -> None:
    def playlist(request: Caller) -> None:
        request.call("videos")

    def home(request: Caller) -> None:
        with suppress(CallFailed):
            request.call("playlist", playlist, impatient=True)

    def outcome(*faults: str) -> tuple[bool, int]:
        run = Run(frozenset(faults)).execute(Call("root", does=home))
        return run.good, run.spans[-1].end

    good, quick = outcome()
    assert good
    assert outcome("error@videos")[0]
    survived, late = outcome("delay@videos")
    assert survived
    assert late == 2 + PATIENCE > quick
    assert outcome("delay@playlist")[0]


def test_a_function_that_raises_anything_else_is_a_mistake_of_the_test() -> None:
    def broken(_: Caller) -> None:
        raise KeyError("of the test")

    with World.in_memory({"/boot": broken}) as world, pytest.raises(KeyError):
        world.step()


def test_the_world_keeps_to_the_services_limits() -> None:
    with World.in_memory(limits=Limits(members_per_hour=20)) as world:
        campaign = world.start(QUICK)
        with pytest.raises(AssertionError, match="budget of the last hour"):
            world.finish(campaign, limit=60)
        assert 0 < sum(map(len, world.exposed.values())) <= 20


def test_what_befalls_requests_besides_is_told_by_the_weather() -> None:
    """Every third fails by itself and is heard of at once; of the others half are lost, the rest
    come ten seconds late."""
    asked: list[str] = []

    def noise(device: str, arm: str | None, now: float) -> Fate:
        asked.append(device)
        assert arm is None
        assert now == world.now
        return Fate(
            fails=len(asked) % 3 == 0, late=10.0 * (len(asked) % 3), lost=len(asked) % 3 == 2
        )

    with World.in_memory(noise=noise) as world:
        world.step(30)
        assert world.engine.outcomes == 10
        for _ in range(8):
            world.step(0)
        assert world.engine.outcomes == 10
        world.step(0)
        assert world.engine.outcomes == 20
        (known,) = world.engine.catalogue.classes.values()
        assert known.traffic.good == 10
        assert known.traffic.steady(world.now).outcomes == 20


def test_what_is_armed_can_be_waited_for() -> None:
    with World.in_memory() as world:
        with pytest.raises(AssertionError, match="nothing was armed in 3 steps"):
            world.until_armed(3)
        world.start(QUICK, classes=("GET /boot",))
        armed = world.until_armed()
        assert world.rules() == [armed]


def test_the_points_of_a_declared_program() -> None:
    assert points_of(PROGRAM) == ["layout", "playlist", "popular", "ratings"]
    assert points_of(Call("root", (Step("retry", (Call("a", (Step("optional", ()),)),)),))) == ["a"]


def test_without_the_service_it_says_what_to_install() -> None:
    program = """
import sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {"sqlalchemy", "fastapi", "httpx"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
for module in ("world", "live_service"):
    try:
        __import__(f"ldfi.testing.{module}")
    except ModuleNotFoundError as error:
        print(error)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.count("pip install 'ldfi[service]'") == 2, done.stderr


PLAYLIST, POPULAR = "api>http:GET:playlist/*", "api>http:GET:popular/"
RATINGS, HISTORY, RANK = "api>http:GET:ratings/*", "api>http:GET:history/*", "api>function:rank"
KINDS = ("refused", "status:500", "empty", "exception:KeyError")


def particular(request: Caller) -> None:
    """Knows what to do about some kinds of failure only."""
    try:
        request.call(PLAYLIST)
    except CallFailed as failed:
        if failed.how != "refused":  # a fallback only on exceptions
            raise
        request.call(POPULAR)
    try:
        request.call(HISTORY)
    except CallFailed as failed:
        if failed.how == "empty":  # it is read without a look
            raise
    with suppress(CallFailed):
        request.call(RATINGS)
    with suppress(CallFailed):
        request.call(RANK)


def minimal_failing_sets(points: list[str], kinds: tuple[str, ...]) -> set[tuple[str, ...]]:
    """By trying them all: of one fault and of two, at most one at a point."""
    at = [(f"{kind}@{point}", point) for point in points for kind in kinds if native(kind, point)]

    def fails(*faults: str) -> bool:
        return not Run(frozenset(faults)).execute(Call("root", does=particular)).good

    alone = {(fault,) for fault, _ in at if fails(fault)}
    pairs = {
        tuple(sorted((a, b)))
        for (a, at_a), (b, at_b) in combinations(at, 2)
        if at_a != at_b and fails(a, b) and not {(a,), (b,)} & alone
    }
    return alone | pairs


def slow(request: Caller) -> None:
    """Waits for ever for one thing, and for a second for two others, one of which it needs."""
    request.call(HISTORY)
    with suppress(CallFailed):
        request.call(RATINGS, impatient=True)
    request.call(PLAYLIST, impatient=True)


SHORT, LONG = "delay:0.1..0.6", "delay:p50=2..p99=9"


@pytest.mark.parametrize(
    "kinds", [(SHORT, LONG), pytest.param((SHORT, LONG, "delay"), marks=pytest.mark.long)]
)
def test_lengths_are_drawn_anew_for_each_request_and_each_way_is_found_for_itself(
    kinds: tuple[str, ...],
) -> None:
    with World.in_memory({"/boot": slow}) as world:
        world.finish(world.start(replace(QUICK, kinds=kinds, each_kind=True)))
        found = {(f"{kind}@{point}",) for kind in kinds[1:] for point in (HISTORY, PLAYLIST)}
        assert world.findings() == dict.fromkeys(found, "open")


@pytest.mark.parametrize("kinds", [KINDS[:2], pytest.param(KINDS, marks=pytest.mark.long)])
def test_every_kind_of_fault_is_tried_where_it_can_happen_and_found_for_itself(
    kinds: tuple[str, ...],
) -> None:
    wanted = minimal_failing_sets([PLAYLIST, POPULAR, RATINGS, HISTORY, RANK], kinds)
    assert {len(each) for each in wanted} == {1, 2}

    with World.in_memory({"/boot": particular}) as world:
        campaign = world.start(replace(QUICK, kinds=kinds, each_kind=True))
        world.finish(campaign)
        assert world.findings() == dict.fromkeys(wanted, "open")
