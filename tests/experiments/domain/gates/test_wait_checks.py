"""Delays, leases and settling that go together, and those that do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.campaign.campaign import Definition
from ldfi.experiments.domain.gates.wait_checks import RENEWED, ServiceTimes, contradiction, fitted
from ldfi.experiments.domain.settings import Settings
from ldfi.fit.protocol.kinds import UsualKind

WAITS = st.builds(ServiceTimes, st.floats(3, 60), st.floats(0.1, 60), st.just(0.0) | st.just(1.0))


@given(
    WAITS,
    st.floats(0.1, 60),
    st.floats(0, 120),
    st.none() | st.floats(0.1, 120),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_what_is_not_refused_holds_whenever_a_request_comes(
    waits: ServiceTimes,
    delay: float,
    settle: float,
    patience: float | None,
    renewed: float,
    asked: float,
) -> None:
    bounds = Settings(delay=delay, settle=settle, patience=patience)
    if contradiction(bounds, waits, delays=True) is not None:
        return
    # Given a lease that was renewed, fetched and used as late as may be
    on_record = waits.lease * (1 - RENEWED * renewed)
    ends = on_record - waits.asked * asked  # it counts from when it was asked for
    comes = waits.asked * asked  # and holds until the next answer
    assert max(ends - comes, patience or 0.0) >= delay - 1e-9
    assert settle >= waits.quiet


@given(WAITS, st.booleans())
def test_what_was_not_given_is_made_to_fit(waits: ServiceTimes, delays: bool) -> None:
    bounds = fitted(Settings(), (), waits, delays=delays)
    if not delays or waits.context >= 0.1:
        assert contradiction(bounds, waits, delays=delays) is None
    assert bounds.delay <= Settings().delay
    assert bounds.settle >= Settings().settle


@given(WAITS, st.floats(0.1, 60))
def test_the_lease_that_is_named_would_do(waits: ServiceTimes, delay: float) -> None:
    longer = ServiceTimes(waits.lease_for(delay) + 1e-6, waits.quiet, waits.asked)
    assert contradiction(Settings(delay=delay, settle=120), longer, delays=True) is None


def test_what_was_given_is_refused_with_the_figures() -> None:
    waits = ServiceTimes(lease=10, quiet=2, asked=1)
    given_ = Settings(delay=10, settle=5)
    assert fitted(given_, {"delay", "settle"}, waits, delays=True) == given_
    assert contradiction(given_, waits, delays=True) == (
        "delays of 10 s need a longer lease: under a lease of 10 s a failure context holds for "
        "4.7 s, and calls after the delay would not be injected. Set LDFI_LEASE=18, a patience of "
        "10 s, or a delay of at most 4.7 s"
    )
    assert contradiction(Settings(delay=10, settle=5, patience=10), waits, delays=True) is None
    said = contradiction(Settings(settle=1), waits, delays=False)
    assert said is not None
    assert "must be at least 2 s, got 1 s" in said
    assert "no span has come for 2 s" in said


def test_no_longer_length_is_drawn_than_a_delay_may_be() -> None:
    waits = ServiceTimes(lease=10, quiet=2, asked=1)
    for kinds, refused in ((("delay:0.5..4.6",), False), (("error", "delay:p50=1..p99=5"), True)):
        bounds = fitted(Settings(kinds=kinds), (), waits, delays=True)
        said = contradiction(bounds, waits, delays=True, kinds=kinds)
        assert (said is not None) == refused
        assert said is None or "of up to 5 s, and delay is 4.6 s, the longest" in said


@pytest.mark.parametrize(("delays", "delay"), [(False, 10.0), (True, 4.6)])
def test_only_who_delays_has_a_delay_to_fit(delays: bool, delay: float) -> None:
    assert fitted(Settings(), (), ServiceTimes(10, 2, 1), delays=delays).delay == delay


@pytest.mark.parametrize(
    ("hypotheses", "kinds", "delays"),
    [
        ((), ("error",), False),
        ((), ("error", "delay"), True),
        ((frozenset({"error@a", "down@b"}),), ("error", "delay"), False),
        ((frozenset({"error@a", "delay@b"}),), ("error",), True),
        ((frozenset({"error@a", "delay:1..2@b"}),), ("error",), True),
    ],
)
def test_what_may_be_delayed(
    hypotheses: tuple[frozenset[str], ...], kinds: tuple[UsualKind, ...], delays: bool
) -> None:
    assert Definition(Settings(kinds=kinds), hypotheses=hypotheses).delays == delays
