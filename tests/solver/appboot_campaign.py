"""One exploration of one App Boot tree, from the failure-free run to the checked certificate."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ldfi.checker.solving import check
from ldfi.solver import Explorer
from tests.solver.appboot import AppBoot


@dataclass(frozen=True)
class Campaign:
    """One exploration of one tree."""

    planted: int
    experiments: int
    failed: int
    all_found: bool
    certified: bool
    bound: int


def campaign(app: AppBoot, *, strategy: str, max_size: int, seed: int, blame: bool) -> Campaign:
    """Explore one tree to the end."""
    explorer = Explorer(max_size=max_size, strategy=strategy, seed=seed, time_limit=None)
    explorer.observe(app.run(frozenset()).support)
    failed = 0
    while (faults := explorer.propose()) is not None:
        injected = frozenset(map(str, faults))
        outcome = app.run(injected)
        if outcome.succeeded:
            explorer.record(injected=injected, succeeded=True, support=outcome.support)
            continue
        failed += 1
        cause = outcome.blame if blame else None
        explorer.record(injected=injected, succeeded=False, blame=cause)
    certificate = explorer.certificate()
    return Campaign(
        planted=len(app.minimal_failing_sets),
        experiments=explorer.experiments,
        failed=failed,
        all_found=set(explorer.findings) == app.minimal_failing_sets,
        certified=certificate.complete and check(json.loads(certificate.to_json())) == [],
        bound=certificate.data["lower_bound"]["total"],
    )
