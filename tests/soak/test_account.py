"""The account of what was produced can find fault: each check is shown what it must complain of."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ldfi.experiments.store.schema import ExperimentRow
from soak.account import (
    Logged,
    Served,
    ill_accounted,
    lost,
    miscounted,
    put_down,
    taken,
    undisturbed,
)
from soak.record import Record
from soak.victims import late_leaders

ONE, TWO = Served("a" * 32, "/boot", ""), Served("b" * 32, "/store", "e1")


def logged(device: str = "d1", *, arm: str = "treatment", success: bool = True) -> Logged:
    """A whole request of experiment e1 whose fault fired."""
    parents = {b"root": b"", b"call": b"root"}
    return Logged(parents, "/boot", "e1", arm, arm == "treatment", device, success)


def test_only_what_was_taken_as_a_whole_was_sent(tmp_path: Path) -> None:
    with (tmp_path / "account").open("w") as file:
        put_down(file, "spans", [ONE, TWO])
        put_down(file, "metrics", [TWO])
    assert taken(tmp_path / "account") == {TWO.trace_id: TWO}


@pytest.mark.parametrize(
    "part",
    [
        Logged({b"root": b""}, "/boot"),  # no device has reported
        Logged(device="d1", success=True),  # nothing but that report
        Logged({b"root": b"", b"call": b"gone"}, "/boot", success=True),
    ],
)
def test_a_request_is_whole_with_both_halves_and_every_parent(part: Logged) -> None:
    assert logged().whole
    assert not part.whole


def test_what_was_taken_and_is_not_there_is_lost() -> None:
    sent = {each.trace_id: each for each in (ONE, TWO)}
    assert lost(sent, {ONE.trace_id: logged()}) == [TWO]


def test_classes_count_good_requests_without_an_experiment() -> None:
    plain = Logged({b"root": b""}, "/boot", success=True)
    failed = Logged({b"root": b""}, "/boot", success=False)
    assert undisturbed([plain, plain, failed, logged()]) == Counter({"/boot": 2})


@pytest.mark.parametrize("got", [Counter({"/boot": 1}), Counter({"/boot": 3}), Counter[str]()])
def test_a_request_too_few_or_too_many_is_found(got: Counter[str]) -> None:
    assert not list(miscounted(Counter({"/boot": 2}), Counter({"/boot": 2})))
    assert list(miscounted(Counter({"/boot": 2}), got))
    assert list(miscounted(Counter[str](), Counter({"/top": 1})))


@pytest.mark.parametrize(
    ("devices", "hurt", "until", "complains"),
    [
        (2, 1, 9.0, False),
        (1, 1, 9.0, False),  # decided before all had reported
        (3, 1, 9.0, True),  # one device counted twice
        (2, 2, 0.0, True),  # hurt that nobody reported
        (2, 0, 4.0, False),  # it could not have heard of it
        (2, 0, 5.0, True),
    ],
)
def test_what_experiments_say_is_held_against_what_kafka_holds(
    devices: int, hurt: int, until: float, complains: bool
) -> None:
    # Given two treated devices, one of them hurt, and one that reported twice
    told = [logged("d1"), logged("d2", success=False), logged("d2", success=False)]
    row = ExperimentRow(id="e1", members_hurt=hurt, comparison={"treatment": {"devices": devices}})
    for each in told:
        each.observed = 5.0
    wrong = list(ill_accounted(Record(0.0, experiments={"e1": row}), told, lambda _: until))
    assert bool(wrong) == complains


def test_a_leader_that_comes_late_is_found() -> None:
    assert late_leaders({"leader": [2.0, 10.5], "broker": [60.0]}) == [
        "a new leader led 10.5 s after the last one was killed"
    ]
