from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.judging.comparison import (
    ArmSample,
    compare,
    differ,
    exceeds,
    more,
    newcombe,
    wilson,
)

ARMS = st.integers(0, 300).flatmap(
    lambda devices: st.builds(
        ArmSample,
        st.just(devices),
        st.integers(0, devices),
        st.lists(st.floats(0, 60), max_size=50),
    )
)


@pytest.mark.parametrize(
    ("treatment", "control", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((5, 56), (0, 29), -0.0381, 0.1926),
    ],
)
def test_differences_have_the_intervals_of_newcombes_table(
    treatment: tuple[int, int], control: tuple[int, int], low: float, high: float
) -> None:
    """Statistics in Medicine 17 (1998), table II, method 10."""
    (failed1, n1), (failed0, n0) = treatment, control

    found = newcombe(ArmSample(n0, failed0), ArmSample(n1, failed1))

    assert found == pytest.approx((low, high), abs=5e-5)


@given(ARMS.filter(lambda arm: arm.devices > 0))
def test_the_rates_interval_is_wilsons(arm: ArmSample) -> None:
    n, p, z = arm.devices, arm.failures / arm.devices, 1.959963984540054
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))

    assert wilson(arm) == pytest.approx((middle - half, middle + half), abs=1e-9)


@pytest.mark.parametrize(
    ("failures", "devices", "low", "high"),
    [
        (0, 1, 0.0, 0.7934506856227626),
        (1, 1, 0.20654931437723745, 1.0),
        (0, 7, 0.0, 0.35433043506668743),
        (7, 7, 0.6456695649333126, 1.0),
        (1, 2, 0.09453120573423074, 0.9054687942657693),
        (3, 10, 0.10779126740630102, 0.6032218525388546),
        (1, 30, 0.005908590381612441, 0.16670390991409173),
        (29, 30, 0.8332960900859083, 0.9940914096183875),
        (48, 80, 0.490454650051604, 0.7003817240412907),
        (56, 70, 0.6918335550374693, 0.8769526075163704),
        (0, 250, 0.0, 0.015133299495444575),
        (250, 250, 0.9848667005045555, 1.0),
        (137, 300, 0.4012029025617837, 0.5132261549443436),
        (2, 1000, 0.0005486435881207272, 0.007262807863492176),
        (999, 1000, 0.9943574414020421, 0.9998234536293739),
        (50000, 100000, 0.49690108435968966, 0.5030989156403103),
        (1, 1000000, 1.765245767453709e-07, 5.664911804311442e-06),
        (123456, 7654321, 0.016039930087946328, 0.01621841360311677),
    ],
)
def test_rate_intervals_are_scipys(failures: int, devices: int, low: float, high: float) -> None:
    """binomtest(failures, devices).proportion_ci(0.95, method="wilson") of SciPy 1.17."""
    assert wilson(ArmSample(devices, failures)) == pytest.approx((low, high), rel=1e-12, abs=1e-15)


def test_no_failure_and_nothing_else_are_exact_ends() -> None:
    for devices in range(1, 200):
        assert wilson(ArmSample(devices, 0))[0] == 0.0
        assert wilson(ArmSample(devices, devices))[1] == 1.0


def test_without_devices_there_is_no_interval() -> None:
    with pytest.raises(ValueError, match="needs devices"):
        wilson(ArmSample(0, 0))


@given(ARMS, ARMS)
def test_every_figure_lies_where_it_must(control: ArmSample, treatment: ArmSample) -> None:
    found = compare(control, treatment)

    for arm, summary in ((control, found.control), (treatment, found.treatment)):
        assert (summary.devices, summary.failures) == (arm.devices, arm.failures)
        if arm.devices:
            assert summary.failure_rate is not None
            assert summary.failure_rate_interval is not None
            low, high = summary.failure_rate_interval
            assert -1e-9 <= low <= summary.failure_rate + 1e-9
            assert summary.failure_rate - 1e-9 <= high <= 1 + 1e-9
        else:
            assert summary.failure_rate is None
            assert summary.failure_rate_interval is None
    if found.difference is not None:
        assert found.difference_interval is not None
        low, high = found.difference_interval
        assert -1 - 1e-9 <= low <= found.difference <= high <= 1 + 1e-9
    else:
        assert 0 in (control.devices, treatment.devices)


@given(st.lists(st.floats(0, 60), max_size=300))
def test_latencies_are_durations_that_so_many_did_not_exceed(durations: list[float]) -> None:
    latency = compare(ArmSample(0, 0, durations), ArmSample(0, 0)).control.latency

    if latency is None:
        assert not durations
        return
    for percent, seconds in ((50, latency.p50), (95, latency.p95), (99, latency.p99)):
        assert seconds in durations
        assert sum(each <= seconds for each in durations) * 100 >= percent * len(durations)
        assert sum(each < seconds for each in durations) * 100 < percent * len(durations)


def test_the_document_holds_plain_values_and_every_name() -> None:
    document = compare(ArmSample(80, 48, [0.1, 0.2]), ArmSample(70, 56)).to_json()

    assert json.loads(json.dumps(document)) == document
    assert document["control"]["latency"] == {"p50": 0.1, "p95": 0.2, "p99": 0.2}
    assert document["treatment"]["latency"] is None
    assert document["treatment"]["failure_rate"] == 0.8
    assert document["difference"] == pytest.approx(0.2)
    assert document["difference_interval"] == pytest.approx([0.0524, 0.3339], abs=5e-5)
    assert document["confidence"] == 0.95


def test_more_failures_than_devices_are_refused() -> None:
    with pytest.raises(ValueError, match="3 failures in 2 devices"):
        ArmSample(2, 3)


def test_large_arms_are_compared_as_small_ones_are() -> None:
    """Numbers that no float holds: they raised OverflowError, and no verdict was given."""
    assert not differ(39, 195, 400, 2_000, 0.05)
    assert differ(100, 195, 400, 2_000, 0.001)
    assert more(100, 195, 400, 2_000, 0.001)
    assert exceeds(1_000, 3_000, 0.3)
    assert not exceeds(910, 3_000, 0.3)


@given(st.integers(1, 60), st.data(), st.floats(0.05, 0.95), st.floats(0.001, 0.5))
def test_exceeding_is_binomial(total: int, data: st.DataObject, limit: float, level: float) -> None:
    some = data.draw(st.integers(0, total))
    tail = sum(
        math.comb(total, k) * limit**k * (1 - limit) ** (total - k) for k in range(some, total + 1)
    )
    if abs(tail - level) > 1e-9:
        assert exceeds(some, total, limit, level) == (some > limit * total and tail < level)
