"""The arithmetic of docs/capacity.md, held against a calculation by hand."""

from __future__ import annotations

import pytest

from benchmarks.capacity import Costs, Site, needs

COSTS = Costs(span_us=10, span_bytes=500, request_us=20, class_bytes=4_000)


def test_needs_by_hand() -> None:
    # The rarest class has one request a second, so 864 samples a day are one in a hundred.
    site = Site(
        requests=10_000,
        spans=10,
        classes=100,
        rarest=1e-4,
        samples=864,
        failed=0.0,
        experiments=10,
        members=864,
        kept_days=10,
        busy=0.5,
    )

    found = needs(site, COSTS)

    assert found.sampled_percent == pytest.approx(1)
    assert found.kept_requests == pytest.approx(100)
    assert found.kept_spans == pytest.approx(1_000)
    assert found.stream_megabytes == pytest.approx(0.5)
    assert found.worker_cores == pytest.approx(0.01)
    assert (found.workers, found.partitions) == (1, 4)
    assert found.engine_cores == pytest.approx(0.002)
    assert found.experiment_rows == 100
    assert found.class_megabytes == pytest.approx(0.4)
    assert found.exposed_share_of_a_day == pytest.approx(1e-5)


def test_failed_requests_are_kept_besides_the_share() -> None:
    site = Site(requests=1_000, rarest=1e-4, samples=864, failed=0.5)

    assert needs(site, COSTS).kept_requests == pytest.approx(1_000 * (0.1 + 0.9 * 0.5))


def test_no_more_is_sampled_than_there_is() -> None:
    assert needs(Site(requests=1, rarest=1e-3), COSTS).sampled_percent == 100
