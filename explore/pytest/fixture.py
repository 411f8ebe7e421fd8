"""What the fixture ``ldfi`` gives to a test: the faults of the run that is going on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from ldfi.fit.protocol.faults import Fault


@dataclass(slots=True)
class Ldfi:
    """``faults``: what is injected in this run of the test; empty in runs without any.

    For a test that asks less of an answer while something is down::

        page = client.get("/products/7").json()
        assert page["price"] == 12
        assert page["reviews"] or ldfi.degraded()
    """

    faults: tuple[Fault, ...] = ()
    was_degraded: bool = False
    """Whether the test said so in this run."""

    def degraded(self) -> bool:
        """Accept an answer from which something is missing, if anything is injected; else False.

        Such a run proves that its faults do not hurt, and nothing about any other one: what was not
        called because something was missing has not been shown to be dispensable.
        """
        self.was_degraded = self.was_degraded or bool(self.faults)
        return bool(self.faults)


PRESENT: Final = pytest.StashKey[Ldfi]()
"""Where an item holds what its fixture gives."""
