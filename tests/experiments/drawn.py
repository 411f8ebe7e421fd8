"""Ids of experiments are drawn alike in each run of a test."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from ldfi.experiments.scheduler import shared_state


def drawing(drawn: random.Random, patch: pytest.MonkeyPatch) -> None:
    """Let ids be what ``drawn`` gives."""
    ids = SimpleNamespace(token_hex=lambda octets: drawn.randbytes(octets).hex())
    patch.setattr(shared_state, "secrets", ids)
