from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.fit.protocol.allocation import Claim, mark_of
from ldfi.fit.protocol.errors import MalformedRules
from ldfi.fit.protocol.predicate import Condition, Predicate
from ldfi.fit.protocol.rules import MAX_LEASE_SECONDS, Lease, Rule, read_lease
from tests.fit.edges import ANY, a_rule

BOOT = {"method": "GET", "path": "/boot"}


def test_allocation_is_sticky_and_near_its_shares() -> None:
    rule = a_rule(treatment=0.1, control=0.2)
    arms = Counter(rule.arm_of(f"device-{i}") for i in range(20_000))

    assert abs(arms["treatment"] / 20_000 - 0.1) < 0.01
    assert abs(arms["control"] / 20_000 - 0.2) < 0.012
    assert all(rule.arm_of("device-7") == rule.arm_of("device-7") for _ in range(3))


def test_allocation_never_changes_from_version_to_version() -> None:
    """Edges of several versions run side by side; figures taken once from this code."""
    rule = a_rule(treatment=0.3, control=0.3)
    treated = [i for i in range(20) if rule.arm_of(f"device-{i}") == "treatment"]
    control = [i for i in range(20) if rule.arm_of(f"device-{i}") == "control"]

    assert (treated, control) == (TREATED, CONTROL)


TREATED = [2, 10, 17, 19]
CONTROL = [0, 1, 5, 8, 18]


@pytest.mark.parametrize("first", [0.05, 0.3, 0.5])
def test_the_arms_of_two_experiments_are_independent(first: float) -> None:
    """A chi-squared test of independence, for forty pairs of salts; its mean must be near 1."""
    devices = [mark_of(f"device-{i}") for i in range(10_000)]
    statistics = []
    for pair in range(40):
        one, other = Claim(f"a{pair}", first, 0.0), Claim(f"b{pair}", 0.5, 0.0)
        counts = Counter((bool(one.arm_of(d)), bool(other.arm_of(d))) for d in devices)
        statistics.append(_chi_squared(counts, len(devices)))

    assert sum(statistics) / 40 < 2.0
    assert max(statistics) < 15.0


def _chi_squared(counts: Counter[tuple[bool, bool]], total: int) -> float:
    statistic = 0.0
    for a, b in itertools.product([True, False], repeat=2):
        row = counts[a, True] + counts[a, False]
        column = counts[True, b] + counts[False, b]
        expected = row * column / total
        statistic += (counts[a, b] - expected) ** 2 / expected
    return statistic


@given(st.text(min_size=1), st.floats(0, 0.4), st.floats(0, 0.1))
def test_widening_a_share_moves_no_device_over(device: str, share: float, more: float) -> None:
    narrow = a_rule(treatment=share, control=share).arm_of(device)
    wide = a_rule(treatment=share + more, control=share + more).arm_of(device)

    assert narrow is None or wide == narrow


@given(st.text(), st.floats(0, 1))
def test_shares_that_sum_to_one_leave_nobody_out(device: str, share: float) -> None:
    assert a_rule(treatment=share, control=1 - share).arm_of(device) is not None


@given(st.text(min_size=1))
def test_a_whole_share_takes_everybody_and_none_takes_nobody(device: str) -> None:
    assert a_rule(treatment=1.0, control=0.0).arm_of(device) == "treatment"
    assert a_rule(treatment=0.0, control=1.0).arm_of(device) == "control"
    assert a_rule(treatment=0.0, control=0.0).arm_of(device) is None


@given(st.text(min_size=1), st.lists(st.floats(0, 0.5), min_size=1, max_size=4))
def test_a_lease_allocates_as_its_rules_do(device: str, shares: list[float]) -> None:
    """The fast path of the lease agrees with each rule asked by itself."""
    rules: list[Rule] = []
    for number, share in enumerate(shares):
        yields_to = tuple(rule.claim for rule in rules)
        rules.append(a_rule(f"e{number}", share, share, yields_to=yields_to))

    alone = [(rule, arm) for rule in rules if (arm := rule.arm_of(device)) is not None]
    assert len(alone) <= 1 or {arm for _, arm in alone} == {"control"}
    assert Lease(tuple(rules)).claims(mark_of(device)) == alone
    assert Lease(tuple(rules)).allocate(BOOT, device) == (alone[0] if alone else None)
    assert Lease(tuple(rules)).allocate({"path": "/other"}, device) is None


@given(st.text(min_size=1))
def test_without_yielding_the_first_rule_has_the_device(device: str) -> None:
    lease = Lease((a_rule("e1", 0.3, 0.3), a_rule("e2", 0.3, 0.3)))
    requests = [{"method": "GET", "path": path} for path in ("/boot", "/search")]
    found = {a[0].experiment for r in requests if (a := lease.allocate(r, device))}

    assert len(found) <= 1


@st.composite
def _histories(draw: st.DrawFn) -> tuple[list[Rule], list[tuple[int, float]]]:
    """Experiments armed and disarmed in some order: their rules, and from when to when."""
    rules: list[Rule] = []
    lives: list[tuple[int, float]] = []
    armed: list[int] = []
    for now in range(draw(st.integers(2, 14))):
        if draw(st.booleans()) and armed:
            gone = armed.pop(draw(st.integers(0, len(armed) - 1)))
            lives[gone] = (lives[gone][0], now)
            continue
        shares = draw(st.tuples(st.floats(0, 0.5), st.floats(0, 0.5)))
        yields_to = tuple(rules[each].claim for each in armed)
        rules.append(
            a_rule(f"e{len(rules)}", *shares, predicate=ANY, yields_to=yields_to),
        )
        armed.append(len(rules) - 1)
        lives.append((now, math.inf))
    return rules, lives


@given(_histories(), st.data())
def test_no_treated_device_is_in_two_experiments_alive_at_once_whatever_the_edges_know(
    history: tuple[list[Rule], list[tuple[int, float]]], data: st.DataObject
) -> None:
    # Given any history, and edges that each hold some of the rules that ever were, in any order
    rules, lives = history
    subsets = st.lists(st.sampled_from(range(len(rules))), unique=True)
    known = data.draw(st.lists(subsets, min_size=1, max_size=4))
    # And in between, the document went over the wire
    documents = [[json.loads(json.dumps(rules[each].to_json())) for each in held] for held in known]
    edges = [
        read_lease({"version": "v", "lease_seconds": 1, "rules": rules_}, 0.0)
        for rules_ in documents
    ]
    # When devices come to every edge
    for device in map(str, range(20)):
        claims = [claim for edge in edges for claim in edge.claims(mark_of(device))]
        met = {(rule.experiment, arm) for rule, arm in claims}
        # Then the lifetimes of two do not overlap where it is treated by one of them
        for (one, arm), (other, its) in itertools.combinations(sorted(met), 2):
            (_, end), (begin, _) = sorted((lives[int(one[1:])], lives[int(other[1:])]))
            assert end <= begin or {arm, its} == {"control"}, (device, one, other)


def test_a_device_may_be_in_control_of_several_experiments_of_different_classes() -> None:
    first = a_rule("e1", 0.0, 1.0)
    search = Predicate.of([Condition("path", "/search")])
    second = a_rule("e2", 0.0, 0.5, predicate=search, yields_to=(first.claim,))
    lease = Lease((first, second))

    for device in (f"d{i}" for i in range(200)):
        assert lease.allocate(BOOT, device) == (first, "control")
        of_second = lease.allocate({"method": "GET", "path": "/search"}, device)
        assert of_second == ((second, "control") if second.arm_of(device) else None)
    assert any(second.arm_of(f"d{i}") for i in range(200))


def test_a_rule_yields_even_to_what_has_ended() -> None:
    first = a_rule("e1", 0.5, 0.5)
    second = a_rule("e2", 0.5, 0.5, yields_to=(first.claim,))

    for device in (f"d{i}" for i in range(200)):
        found = Lease((second,)).allocate(BOOT, device)
        assert found is None or (found[1], first.arm_of(device)) == ("control", "control")


def test_a_lease_counts_from_when_it_was_asked_for() -> None:
    rule = a_rule(members=3, patience=40.0, yields_to=(Claim("s", 0.1, 0.2),))
    document = {"version": "1", "lease_seconds": 10, "rules": [rule.to_json()]}

    lease = read_lease(document, asked_at=100.0)

    assert lease.ends == 110.0
    assert lease.rules == (rule,)


def test_an_endless_lease_ends_within_the_longest() -> None:
    document = {"version": "1", "lease_seconds": 1e308, "rules": []}

    assert read_lease(document, asked_at=100.0).ends == 100.0 + MAX_LEASE_SECONDS


def test_a_rule_of_a_service_that_knows_no_allowances_has_no_limit() -> None:
    data = a_rule().to_json()
    del data["members"], data["yields_to"]

    assert Rule.from_json(data) == a_rule()


WRONG: list[Any] = [
    None,
    True,
    "x",
    "",
    -1,
    1.5,
    math.nan,
    math.inf,
    10**400,
    [],
    [1],
    {},
    {"a": 1},
]
FIELDS = ["experiment", "salt", "predicate", "treatment", "control", "faults", "delay_ms"]


@pytest.mark.parametrize("field", [*FIELDS, "members", "yields_to", "patience"])
@pytest.mark.parametrize("value", WRONG, ids=lambda v: repr(v)[:12])
def test_a_wrong_type_anywhere_is_refused_or_means_what_it_says(field: str, value: Any) -> None:
    data = {**a_rule().to_json(), field: value}
    try:
        (rule,) = read_lease({"version": "1", "lease_seconds": 1, "rules": [data]}, 0.0).rules
    except MalformedRules:
        return
    assert Rule.from_json(rule.to_json()) == rule
    assert 0 <= rule.treatment + rule.control <= 1
    assert rule.members is None or rule.members >= 0
    assert value in (rule.to_json()[field], None, [], {}) or field == "yields_to"


@pytest.mark.parametrize("field", FIELDS)
def test_a_missing_field_is_refused(field: str) -> None:
    data = a_rule().to_json()
    del data[field]
    with pytest.raises(MalformedRules, match=field):
        read_lease({"version": "1", "lease_seconds": 1, "rules": [data]}, 0.0)


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        "rules",
        {},
        {"version": "1", "lease_seconds": 1},
        {"version": "1", "lease_seconds": math.nan, "rules": []},
        {"version": "1", "lease_seconds": -1, "rules": []},
        {"version": 1, "lease_seconds": 1, "rules": []},
        {"version": "1" * 65, "lease_seconds": 1, "rules": []},
        {"version": "1", "lease_seconds": 1, "rules": [None]},
        {"version": "1", "lease_seconds": 1, "rules": [a_rule().to_json()] * 2},
        {
            "version": "1",
            "lease_seconds": 1,
            "rules": [a_rule(treatment=0.6, control=0.6).to_json()],
        },
    ],
)
def test_a_document_that_is_none_of_ours_is_refused(document: Any) -> None:
    with pytest.raises(MalformedRules, match="rules not understood"):
        read_lease(document, 0.0)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.sampled_from([*FIELDS, "members", "yields_to"]), JSON)
def test_any_value_in_any_field_is_read_or_refused(field: str, value: Any) -> None:
    data = {**a_rule().to_json(), field: value}
    try:
        lease = read_lease({"version": "1", "lease_seconds": 1, "rules": [data]}, 0.0)
    except MalformedRules:
        return
    assert lease.rules == (replace(lease.rules[0]),)
