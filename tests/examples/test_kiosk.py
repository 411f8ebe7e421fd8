"""The kiosk: what is found by injecting kinds of fault is what happens when they are caused."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.examples.kiosk_for_real import KIOSK, compared, differing, planted, presumed

KINDS = ("refused", "status:500", "empty")

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


def test_every_weakness_is_of_its_own_kinds() -> None:
    alone = {kind: planted([kind]) for kind in KINDS}
    assert all(alone.values())
    assert len({len(found) for found in alone.values()}) > 1
    named = {name for each in KIOSK.PLANTED for name in each}
    assert named == set(KIOSK.NAMES[1:])


def test_what_is_caused_and_what_was_found_are_told_apart() -> None:
    one, other, both = ({"refused@a"}, {"empty@a"}, {"refused@a", "refused@b"})
    survived, by_itself, pair = map(frozenset, (other, one, both))
    found = [by_itself]

    agreed = {survived: False, by_itself: True, pair: True}
    assert differing(agreed, found, each_kind=True) == []
    assert differing(agreed | {pair: False}, found, each_kind=False) == [pair]
    assert differing(agreed, [], each_kind=False) == [by_itself, pair]
    presumed = agreed | {survived: True}
    assert differing(presumed, found, each_kind=False) == []
    assert differing(presumed, found, each_kind=True) == [survived]


@pytest.mark.skipif(
    shutil.which("curl") is None and not os.environ.get("CI"), reason="there is no curl"
)
def test_killed_and_switched_for_real_all_is_as_it_was_found() -> None:
    ran = compared(KINDS)

    assert differing(ran.gone, ran.found, each_kind=False) == []
    assert ran.found <= planted(KINDS)
    assert all(presumed(each, ran.found) for each in planted(KINDS) - ran.found)
    assert ran.is_well
    services = len(KIOSK.NAMES) - 1
    pairs = services * (services - 1) // 2
    assert len(ran.gone) == 1 + services * len(KINDS) + pairs * len(KINDS) ** 2
    assert 0 < len(ran.found) < sum(ran.gone.values()) < len(ran.gone)
    assert ran.kills > pairs
