from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))


@pytest.fixture(scope="session")
def shop(ldfi_services) -> str:
    from bookshop import services

    ldfi_services.seconds = 120  # ten interpreters
    every = services()
    ldfi_services.start(*every)
    return every[0].url
