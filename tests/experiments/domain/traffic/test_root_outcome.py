from __future__ import annotations

from ldfi.experiments.domain.traffic.observation import Join, Outcome
from ldfi.experiments.domain.traffic.root_outcome import root_outcome
from ldfi.testing.spans import TRACE, lineage, span


def test_the_root_span_tells_whether_the_request_went_well() -> None:
    good = lineage(
        span("root", kind="server", at=(0, 1_500_000_000)),
        span("api>cache:get:home", "root", failed=True, at=(1, 2)),
    )
    bad = lineage(span("root", kind="server", failed=True, at=(0, 500_000_000)))

    assert root_outcome(good) == Outcome(TRACE, TRACE, "", success=True, duration=1.5)
    assert root_outcome(bad) == Outcome(
        TRACE, TRACE, "", success=False, error_code="root-span", duration=0.5
    )


def test_it_joins_the_lineage_it_came_from() -> None:
    seen = lineage(span("root", kind="server"))
    join = Join()
    join.add_lineage(seen, 0.0)

    joined = join.add_outcome(root_outcome(seen), 0.0)

    assert joined is not None
    assert joined.lineage == seen
