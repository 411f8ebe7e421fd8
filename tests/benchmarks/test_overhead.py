"""The cases of ``benchmarks.overhead`` are calls that clients take, with a context or without."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.overhead import KEYS, carrying, cases
from ldfi.fit.runtime import Runtime, activate


@pytest.mark.parametrize("armed", [False, True])
def test_every_call_passes_its_point(*, armed: bool) -> None:
    activate(Runtime("api", KEYS))
    try:
        asyncio.run(_called(armed=armed))
    finally:
        activate(None)


async def _called(*, armed: bool) -> None:
    """Some clients look for a loop."""
    with carrying(armed=armed):
        for _, without, with_point in cases():
            without()
            with_point()
