"""Pictures without a script are well-formed, stay within themselves, and carry no style."""

from __future__ import annotations

from xml.etree.ElementTree import Element, fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.dashboards.curves import evidence_picture, interval_bar, looks_picture, thresholds_of
from ldfi.experiments.domain.judging.sequential_tests import SequentialTests
from ldfi.experiments.domain.settings import Thresholds
from ldfi.experiments.domain.traffic.catalogue import Look

CURVES = st.lists(
    st.tuples(st.integers(0, 500), st.floats(-20, 20), st.floats(-20, 20)), max_size=30
)


def lines(svg: str, kind: str) -> list[list[tuple[float, float]]]:
    root = fromstring(svg)  # noqa: S314 - it is our own
    no_styles(root)
    return [
        [(float(x), float(y)) for x, y in (point.split(",") for point in text.split())]
        for each in root.iter("polyline")
        if each.get("class") == f"line {kind}" and (text := each.get("points", ""))
    ]


def no_styles(root: Element) -> None:
    assert not any(each.get("style") for each in root.iter())


@given(CURVES)
def test_evidence_stays_in_its_picture(curve: list[tuple[int, float, float]]) -> None:
    svg = str(evidence_picture(curve, 3.0, 1.3))
    for kind in ("harmful", "tolerated"):
        for line in lines(svg, kind):
            assert all(0 <= x <= 640 and 0 <= y <= 240 for x, y in line)


def test_evidence_that_decided_ends_above_its_threshold() -> None:
    tests = SequentialTests()
    while tests.verdict() is None:
        tests.add(treated=True, failed=True)
        tests.add(treated=False, failed=False)
    harmful, tolerated = thresholds_of(Thresholds(), None)
    svg = str(evidence_picture(tests.curve, harmful, tolerated))

    (line,) = lines(svg, "harmful")
    root = fromstring(svg)  # noqa: S314
    (level,) = [each for each in root.iter("line") if each.get("class") == "level harmful"]
    assert line[-1][1] <= float(level.get("y1", "nan"))
    assert line[0][1] > float(level.get("y1", "nan"))


def test_thresholds_are_those_that_decide() -> None:
    assert thresholds_of(Thresholds(), None) == pytest.approx((3.0, 1.30103))
    assert thresholds_of(Thresholds(), 1e-5)[0] == pytest.approx(5.0)
    assert thresholds_of(Thresholds(), 1.0)[0] == pytest.approx(3.0)


def test_a_change_of_lineage_is_a_line_where_it_happened() -> None:
    looks = [Look(float(at), 1 + (at > 3), 1.0 - at / 10, 0.9, 500) for at in range(6)]
    root = fromstring(str(looks_picture(looks)))  # noqa: S314
    drift = [each for each in root.iter("line") if each.get("class") == "drift"]
    assert len(drift) == 1


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_intervals(low: float, rate: float, high: float) -> None:
    no_styles(fromstring(str(interval_bar(low, rate, high, "control"))))  # noqa: S314
