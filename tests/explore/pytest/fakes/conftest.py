"""What the applications under test have in common: they need ``stock``, and want ``reviews``."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

STOCK = "http://stock/17"
REVIEWS = "http://reviews/17"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def cassette(tmp_path: Path) -> Path:
    """What vcrpy recorded of both services once."""
    path = tmp_path / "both.yaml"
    interactions = [
        {
            "request": {"method": "GET", "uri": url, "body": None, "headers": {}},
            "response": {
                "status": {"code": 200, "message": "OK"},
                "headers": {},
                "body": {"string": "ok"},
            },
        }
        for url in (STOCK, REVIEWS)
    ]
    path.write_text(yaml.safe_dump({"version": 1, "interactions": interactions}))
    return path
