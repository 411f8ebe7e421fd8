from __future__ import annotations

import time
from collections import Counter

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fit
from fit import baggage
from fit.context import decode, encode
from fit.faults import Fault
from fit.poll import RulesPoll
from fit.predicate import Condition, Predicate
from fit.rules import Lease, Rule, read_lease
from tests.fit.applications import KEYS, Recorded, echo_app, served, traced

BOOT = Predicate.of([Condition("method", "GET"), Condition("path", "/boot")])


def a_rule(experiment: str = "e1", treatment: float = 1.0, control: float = 0.0) -> Rule:
    faults = (Fault("api>http:GET:ratings/titles/*", "error"),)
    return Rule(experiment, f"salt-{experiment}", BOOT, treatment, control, faults)


class Held(RulesPoll):
    """Rules that were given, not fetched."""

    def __init__(self, *rules: Rule, ends: float | None = None) -> None:
        super().__init__("http://127.0.0.1:9", "")
        self._lease = Lease(rules, time.time() + 10 if ends is None else ends, "v")

    def start(self) -> None:
        pass


def asked(poll: RulesPoll, path: str = "/boot", **headers: str) -> str:
    """The baggage that reaches the application behind the edge."""
    headers = {"x-device-id": "d1", **headers}
    with served(fit.EdgeMiddleware(echo_app(), poll)) as url:
        return httpx.get(f"{url}{path}", headers=headers, trust_env=False).text


@pytest.mark.usefixtures("installed")
class TestEdge:
    def test_a_device_in_treatment_gets_a_context_that_ends_with_the_lease(self) -> None:
        value = baggage.find(asked(Held(a_rule())))

        assert value is not None
        context = decode(KEYS, value, time.time())
        assert (context.experiment, context.arm) == ("e1", "treatment")
        assert context.expires <= time.time() + 11

    def test_other_requests_and_devices_without_a_name_get_none(self) -> None:
        assert asked(Held(a_rule()), "/search") == ""
        assert asked(Held(a_rule()), **{"x-device-id": ""}) == ""

    def test_when_the_lease_has_run_out_the_edge_is_quiet(self) -> None:
        assert asked(Held(a_rule(), ends=time.time() - 0.001)) == ""

    @pytest.mark.parametrize("foreign", ["fit=1.k.e.t.1.e.x", "fit=x,fit=y", "a=b, fit = 1.2;p=q"])
    def test_a_foreign_context_is_stripped_and_nothing_else(self, foreign: str) -> None:
        seen = asked(Held(), baggage=f"user=u1,{foreign}")

        assert baggage.find(seen) is None
        assert "user=u1" in seen

    def test_a_context_that_verifies_passes_and_takes_precedence(self) -> None:
        value = encode(KEYS, "replay", "treatment", int(time.time()) + 5, [])

        assert baggage.find(asked(Held(a_rule()), baggage=f"fit={value}")) == value

    def test_an_exception_of_ours_never_reaches_the_request_and_lets_nothing_in(self) -> None:
        class Broken(Held):
            def lease(self) -> Lease:
                raise RuntimeError("broken")

        assert asked(Broken(), baggage="user=u1,fit=x") == ""

    def test_the_stamped_request_is_sampled_and_says_what_it_is_in(
        self, recorded: Recorded
    ) -> None:
        app = fit.EdgeMiddleware(traced(echo_app(), recorded), Held(a_rule()))
        with served(app) as url:
            httpx.get(f"{url}/boot", headers={"x-device-id": "d1"}, trust_env=False)
            httpx.get(f"{url}/search", headers={"x-device-id": "d1"}, trust_env=False)

        (attributes,) = recorded.attributes("SERVER")
        assert (attributes["fit.experiment"], attributes["fit.arm"]) == ("e1", "treatment")


def test_without_a_key_the_edge_still_strips() -> None:
    assert asked(Held(a_rule()), baggage="fit=1.2.3") == ""


def test_allocation_is_sticky_and_near_its_shares() -> None:
    rule = a_rule(treatment=0.1, control=0.2)
    arms = Counter(rule.arm_of(f"device-{i}") for i in range(20_000))

    assert abs(arms["treatment"] / 20_000 - 0.1) < 0.01
    assert abs(arms["control"] / 20_000 - 0.2) < 0.012
    assert all(rule.arm_of("device-7") == rule.arm_of("device-7") for _ in range(3))


@given(st.text(min_size=1), st.floats(0, 0.4), st.floats(0, 0.1))
def test_widening_a_share_moves_no_device_from_one_arm_to_the_other(
    device: str, share: float, more: float
) -> None:
    narrow = a_rule(treatment=share, control=share).arm_of(device)
    wide = a_rule(treatment=share + more, control=share + more).arm_of(device)

    assert narrow is None or wide == narrow


@given(st.text(min_size=1))
def test_no_device_is_in_two_experiments(device: str) -> None:
    lease = Lease((a_rule("e1", 0.3, 0.3), a_rule("e2", 0.3, 0.3)), 0.0)
    requests = [{"method": "GET", "path": path} for path in ("/boot", "/search")]
    found = {a[0].experiment for r in requests if (a := lease.allocate(r, device))}

    assert len(found) <= 1


def test_a_lease_counts_from_when_it_was_asked_for() -> None:
    document = {"version": "1", "lease_seconds": 10, "rules": [a_rule().to_json()]}

    lease = read_lease(document, asked_at=100.0)

    assert lease.ends == 110.0
    assert lease.rules == (a_rule(),)


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", "fit"]), st.text("xyz123.", min_size=1))),
)
def test_baggage_is_taken_out_and_put_in_without_touching_the_rest(
    members: list[tuple[str, str]],
) -> None:
    header = ",".join(f"{name}={value}" for name, value in members)
    others = [f"{n}={v}" for n, v in members if n != "fit"]

    cleaned = baggage.without(header)

    assert [m for m in cleaned.split(",") if m] == others
    assert baggage.find(baggage.with_entry(cleaned, "v")) == "v"
