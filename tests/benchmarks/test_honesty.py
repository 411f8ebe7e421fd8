"""The benchmark of honesty: its worlds are what they say, its bounds are exact, and it would notice
a dishonest verdict."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import honesty
from benchmarks.honest_traffic import Device, Request, Scene
from benchmarks.honest_worlds import (
    DECEPTIVE,
    FAULT,
    HARMLESS,
    NAMES,
    OUT_OF_REACH,
    PLAIN,
    TROUBLED,
    drawn,
)
from benchmarks.honesty import Ended, ended, interval, targets_of, told, upper
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.predicate import Predicate
from ldfi.fit.protocol.rules import Rule


@pytest.mark.parametrize(
    ("count", "total", "bound"),
    [(0, 1_000, 1 - 0.05**0.001), (0, 10, 1 - 0.05**0.1), (1, 10, 0.394163), (10, 10, 1.0)],
)
def test_the_bound_is_that_of_clopper_and_pearson(count: int, total: int, bound: float) -> None:
    """For none in n it is 1 - 0.05^(1/n); one of ten is in their tables."""
    assert upper(count, total) == pytest.approx(bound, abs=1e-5)


def test_the_interval_is_two_sided() -> None:
    assert interval(3, 10) == pytest.approx((0.06674, 0.65245), abs=1e-4)
    assert interval(0, 20) == pytest.approx((0.0, 1 - 0.025 ** (1 / 20)), abs=1e-6)


def suffers(scene: Scene, name: str, *, faults: tuple[Fault, ...]) -> bool:
    """Whether a device that asks three times under faults that hold for ever is not content each
    time, or not heard of."""
    device, rng, content = Device(name), random.Random(name), True
    for number in range(3):
        request = Request(device, f"{number:032x}", 2_000.0 + 100 * number)
        rule = Rule("e", "s", Predicate(), 1.0, 0.0, faults)
        request.claim(rule, "treatment", 1e12, again=number > 0)
        scene.serve(request)
        reports = scene.report(request, rng)
        content &= request.good and bool(reports) and all(good for _, _, good in reports)
    return not content


@pytest.mark.parametrize("name", [each for each in DECEPTIVE if "heard" not in each])
def test_a_fault_hurts_where_it_is_planted_and_nowhere_else(name: str) -> None:
    """Told by the application alone, without any service."""
    fault = (Fault(FAULT, "refused"),)
    names = [f"seldom{number}" for number in range(60)]
    for seed in range(6):
        hurts = drawn(name, random.Random(seed))
        harmless = drawn(name + HARMLESS, random.Random(seed))
        assert hurts.planted == {FAULT}
        assert harmless.planted == frozenset()
        hurt = sum(suffers(hurts, each, faults=fault) for each in names)
        well = sum(suffers(harmless, each, faults=fault) for each in names)
        assert hurt > hurts.settings.delta * len(names)
        assert well == 0 or name == "contradictory reports"  # where some are bad whatever is done


def told_of(world: str, **more: Any) -> Ended:
    given: dict[str, Any] = {"found": world in {*DECEPTIVE, *PLAIN}, "false": [], "complete": True}
    given |= {"left": [FAULT] if world in OUT_OF_REACH else [], "refused": False, **more}
    known = {"seed": 1, "commit": "c", "digest": "d", "experiments": 4, "seconds": 9.0, "cpu": 1.0}
    return Ended(world=world, **{"devices": 100, "story": [], **known, **given})


def missed(**more: Any) -> set[str]:
    targets = targets_of([told_of(world, **more) for world in NAMES for _ in range(100)])
    assert {frozenset(each) for each in targets.values()} == {frozenset({"value", "target", "met"})}
    return {name for name, each in targets.items() if not each["met"]}


def test_whatever_is_wrong_misses_its_target() -> None:
    assert missed() == set()
    assert {f"false findings: {world}" for world in TROUBLED} <= missed(false=["a"])
    assert {f"false certificates: {world}" for world in (*DECEPTIVE, *PLAIN)} <= missed(found=False)
    harmless = {world + HARMLESS for world in DECEPTIVE} - OUT_OF_REACH
    assert {f"complete: {world}" for world in harmless} <= missed(complete=False)
    out_of_reach = {f"only the fault is left out, by name: {world}" for world in OUT_OF_REACH}
    assert out_of_reach <= missed(left=["another"])
    assert {f"devices, times as many as before: {world}" for world in honesty.BEFORE} <= missed(
        devices=1_000
    )


def test_only_what_the_same_code_has_judged_is_added_up(tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    now = honesty.digest()
    lines = [vars(told_of("drift", digest=each)) for each in (now, now, "other")]
    kept.write_text("".join(json.dumps(each) + "\n" for each in lines))
    assert len(honesty.measure(["drift"], 0, kept)) == 2


@pytest.mark.long
def test_a_campaign_is_the_same_for_the_same_seed() -> None:
    piece = ("outages at random", 7, "c", "d")
    one, other = ended(piece), ended(piece)
    assert replace(one, cpu=0.0) == replace(other, cpu=0.0)
    story, campaign = told(*piece[:2])
    assert story
    assert len(campaign.story) == one.experiments + 1
