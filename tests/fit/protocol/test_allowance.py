from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ldfi.fit.protocol import allowance
from ldfi.fit.protocol.allowance import MAX_REPORT, Allowances, Enrolled, written
from ldfi.fit.protocol.context import Arm
from tests.fit.edges import a_rule


def limited(**members: int | None) -> Allowances:
    allowances = Allowances()
    allowances.renew([a_rule(name, members=limit) for name, limit in members.items()])
    return allowances


def test_a_device_counts_once_and_stays_treated_when_the_allowance_is_used_up() -> None:
    allowances = limited(e1=2)

    assert [allowances.admit("e1", "treatment", d) for d in (1, 1, 2, 3, 1)] == [1, 1, 1, 0, 1]
    assert allowances.report() == {"e1": Enrolled(2, wants=True)}


def test_a_used_up_allowance_closes_both_arms_and_keeps_who_is_in_them() -> None:
    allowances = limited(e1=1)
    assert allowances.admit("e1", "control", 10)
    assert allowances.admit("e1", "treatment", 1)

    assert not allowances.admit("e1", "control", 11)
    assert allowances.admit("e1", "control", 10)


def test_with_none_allowed_nobody_is_stamped() -> None:
    allowances = limited(e1=0)

    assert not allowances.admit("e1", "treatment", 1)
    assert not allowances.admit("e1", "control", 2)


def test_a_raised_allowance_opens_the_experiment_again() -> None:
    allowances = limited(e1=1)
    allowances.admit("e1", "treatment", 1)
    allowances.renew([a_rule("e1", members=2)])

    assert [allowances.admit("e1", "treatment", d) for d in (2, 3)] == [True, False]


def test_an_experiment_that_is_not_armed_admits_nobody() -> None:
    allowances = limited(e1=None)
    allowances.admit("e1", "treatment", 1)
    allowances.renew([])

    assert not allowances.admit("e1", "treatment", 1)
    assert not allowances.admit("e2", "treatment", 1)


def test_what_left_the_lease_is_reported_until_one_report_is_answered() -> None:
    # Given an experiment in which a device was treated, and that was reported while armed
    allowances = limited(e1=None)
    allowances.admit("e1", "treatment", 1)
    allowances.settle(allowances.report())
    urgent = [allowances.urgent]
    # When it leaves the lease, it is urgent, report after report
    allowances.renew([])
    urgent.append(allowances.urgent)
    report = allowances.report()
    assert report == allowances.report() == {"e1": Enrolled(1)}
    # Until one is answered
    allowances.settle(report)
    assert allowances.report() == {}
    assert [*urgent, allowances.urgent] == [False, True, False]


def test_a_used_up_allowance_is_urgent_once() -> None:
    allowances = limited(e1=1)
    urgent = [allowances.urgent]
    allowances.admit("e1", "treatment", 1)
    urgent.append(allowances.urgent)
    allowances.settle(allowances.report())
    assert [*urgent, allowances.urgent] == [False, True, False]


def test_a_report_fits_a_url_and_begins_with_what_is_urgent() -> None:
    names = [f"{number:04}-{'x' * 59}" for number in range(100)]
    allowances = Allowances()
    allowances.renew([a_rule(name) for name in names])
    for name in names:
        allowances.admit(name, "treatment", 1)
    allowances.renew([a_rule(name) for name in names[:-1]])

    report = allowances.report()

    assert next(iter(report)) == names[-1]
    assert 50 < len(report) < 100
    assert sum(map(len, written(report).values())) <= MAX_REPORT


def test_memory_is_bounded_over_all_experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowance, "MAX_DEVICES", 3)
    allowances = limited(e1=None, e2=None)
    arms: Sequence[Arm] = ("treatment", "control")

    admitted = [allowances.admit("e1", arm, d) for arm in arms for d in (1, 2)]
    assert admitted == [True, True, True, False]
    assert not allowances.admit("e2", "treatment", 1)
    # Once the first experiment is over and reported, there is room again
    allowances.renew([a_rule("e2")])
    allowances.settle(allowances.report())
    assert allowances.admit("e2", "treatment", 1)


def test_many_threads_together_never_treat_more_than_allowed() -> None:
    allowances = limited(e1=50)
    admitted: list[int] = []
    barrier = threading.Barrier(8)

    def treat(offset: int) -> None:
        barrier.wait()
        devices = range(offset, offset + 200)
        admitted.extend(d for d in devices if allowances.admit("e1", "treatment", d))

    threads = [threading.Thread(target=treat, args=(each * 100,)) for each in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(admitted)) == 50
    assert allowances.report() == {"e1": Enrolled(50, wants=True)}


def test_who_had_to_turn_a_device_away_says_so_at_once_and_then_with_every_report() -> None:
    # Given an edge that may treat nobody yet
    allowances = limited(e1=0)
    assert not allowances.admit("e1", "control", 1)
    assert allowances.report() == {}  # one in control is no reason to want more
    # When a device comes that would be treated
    assert not allowances.admit("e1", "treatment", 2)
    urgent = [allowances.urgent]
    assert allowances.report() == {"e1": Enrolled(0, 0, wants=True)}
    # Then it is urgent until it is told, and stays said until there is more
    allowances.settle(allowances.report())
    assert not allowances.admit("e1", "treatment", 3)
    urgent.append(allowances.urgent)
    assert allowances.report() == {"e1": Enrolled(0, 0, wants=True)}
    allowances.renew([a_rule("e1", members=1)])
    assert allowances.report() == {}
    assert allowances.admit("e1", "treatment", 4)
    assert urgent == [True, False]
    # And when that is used up, the same again
    allowances.settle(allowances.report())
    assert not allowances.urgent
    assert not allowances.admit("e1", "treatment", 5)
    assert allowances.urgent


def test_devices_in_control_are_reported_as_well_and_to_the_end() -> None:
    allowances = limited(e1=None)
    allowances.admit("e1", "control", 1)
    assert written(allowances.report()) == {"used": "", "control": "e1:1", "wants": ""}
    allowances.renew([])
    assert allowances.urgent
    assert allowances.report() == {"e1": Enrolled(0, 1)}
    allowances.settle(allowances.report())
    assert allowances.report() == {}


EXPERIMENTS = st.sampled_from(["e1", "e2", "e3"])


class Ledger(RuleBasedStateMachine):
    """A control plane that hears reports, some of them lost, against a model of who was treated."""

    def __init__(self) -> None:
        super().__init__()
        self.allowances = Allowances()
        self.treated: dict[str, set[int]] = {}
        self.controls: dict[str, set[int]] = {}
        self.final: dict[str, int] = {}
        self.armed: set[str] = set()
        self.ever: set[str] = set()

    @rule(armed=st.dictionaries(EXPERIMENTS, st.none() | st.integers(0, 4)))
    def lease(self, armed: dict[str, int | None]) -> None:
        armed = {name: limit for name, limit in armed.items() if name not in self.ended}
        self.allowances.renew([a_rule(name, members=limit) for name, limit in armed.items()])
        self.armed = set(armed)
        self.ever |= self.armed

    @property
    def ended(self) -> set[str]:
        """An experiment that has ended is never armed again."""
        return self.ever - self.armed

    @rule(name=EXPERIMENTS, arm=st.sampled_from(["treatment", "control"]), device=st.integers(0, 9))
    def request(self, name: str, arm: Arm, device: int) -> None:
        if self.allowances.admit(name, arm, device):
            assert name in self.armed
            devices = self.treated if arm == "treatment" else self.controls
            devices.setdefault(name, set()).add(device)

    @rule(answered=st.booleans())
    def poll(self, answered: bool) -> None:
        report = self.allowances.report()
        for name, each in report.items():
            assert each.treatment == len(self.treated.get(name, ()))
            assert each.control == len(self.controls.get(name, ()))
        if answered:
            self.final.update({name: each.treatment for name, each in report.items()})
            self.allowances.settle(report)

    @invariant()
    def nothing_treated_is_ever_lost(self) -> None:
        report = {name: each.treatment for name, each in self.allowances.report().items()}
        for name, devices in self.treated.items():
            assert report.get(name) == len(devices) or self.final.get(name) == len(devices)

    @invariant()
    def what_has_ended_is_urgent_until_it_is_known(self) -> None:
        untold = [n for n in self.ended if self.treated.get(n) and n in self.allowances.report()]
        assert not untold or self.allowances.urgent


TestLedger = Ledger.TestCase
TestLedger.settings = settings(stateful_step_count=30)


def test_what_leaves_the_lease_while_a_report_is_under_way_is_reported_once_more() -> None:
    """Rules come by a stream as well, so that can be at any moment."""
    allowances = Allowances()
    allowances.renew([a_rule("e1", members=2)])
    allowances.admit("e1", "treatment", 1)
    report = allowances.report()
    allowances.admit("e1", "treatment", 2)
    allowances.renew([])
    allowances.settle(report)
    last = allowances.report()
    assert last == {"e1": Enrolled(2)}
    allowances.settle(last)
    assert allowances.report() == {}
