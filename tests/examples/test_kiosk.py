"""The kiosk: what is found by injecting kinds of fault is what happens when they are caused.

The short form of ``python -m benchmarks.kinds --only real``, which tries more kinds and presumes
none.
"""

from __future__ import annotations

import shutil

import pytest

from benchmarks.kinds_real import KIOSK, measured, planted

KINDS = ("refused", "status:500", "empty")

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


def test_every_weakness_is_of_its_own_kinds() -> None:
    alone = {kind: planted([kind]) for kind in KINDS}
    assert all(alone.values())
    assert len({len(found) for found in alone.values()}) > 1
    named = {name for each in KIOSK.PLANTED for name in each}
    assert named == set(KIOSK.NAMES[1:])


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_killed_and_switched_for_real_all_is_as_it_was_found() -> None:
    rows, targets = measured(KINDS, each_kind=False)

    assert all(target["met"] for target in targets.values()), (rows, targets)
    (row,) = rows
    services = len(KIOSK.NAMES) - 1
    pairs = services * (services - 1) // 2
    assert row["caused"] == 1 + services * len(KINDS) + pairs * len(KINDS) ** 2
    assert 0 < int(str(row["findings"])) < int(str(row["gone"])) < int(str(row["caused"]))
    assert int(str(row["killed"])) > pairs
