"""A staging system of two weaknesses, with no devices, and nobody who watches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, HTTPException

from ldfi import fit
from ldfi.scenarios.scenario import of_document
from tests.scenarios.one_address import traced

KEY = "staging:0123456789abcdef"
DEVICE = "engineer-7"
LICENSE = "error@api>db:get:licensedb"
LAYOUT = "error@api>db:get:layoutdb"


@dataclass
class Staging:
    """It sends its spans to ``otlp`` (HOST:PORT), where somebody may listen. ``repaired``: its code
    behaves as if somebody had fixed how it plays."""

    url: str = ""
    otlp: str = ""
    repaired: bool = False


@contextmanager
def staging(monkeypatch: pytest.MonkeyPatch) -> Iterator[Staging]:
    """Serve it."""
    running = Staging()
    with traced(_application(running), "api", KEY, monkeypatch) as there:
        running.url, running.otlp = there.url, there.otlp
        yield running


def _application(system: Staging) -> FastAPI:
    app = FastAPI()

    @app.get("/play/{title}")
    async def play(title: str) -> dict[str, Any]:
        try:
            with fit.point("db", "get", peer="licensedb"):
                return {"title": title, "license": {"key": "k"}}
        except Exception as error:
            if system.repaired:
                return {"title": title, "license": {"key": "of yesterday"}}
            raise HTTPException(502, "no licence") from error

    @app.get("/boot")
    async def boot() -> dict[str, Any]:
        try:
            with fit.point("db", "get", peer="layoutdb"):
                return {"rows": [{"row": "new"}]}
        except Exception:  # noqa: BLE001 - hidden behind a 200
            return {"error": "no layout"}

    return app


def scenario_file(folder: Path, *faults: str, path: str = "/play/7", **parts: object) -> Path:
    """A scenario of it in a file."""
    document = {
        "version": 1,
        "id": "7c1e55aa0b12",
        "title": "GET /play/* fails without a licence",
        "request_class": {"name": "GET /play/*"},
        "request": {"method": "GET", "path": path, "headers": {"x-device-type": "tv"}},
        "faults": list(faults or (LICENSE,)),
        "delay": 1.0,
        "environment": {"ldfi": "0.1.0"},
        **parts,
    }
    file = folder / "scenario.yaml"
    file.write_text(of_document(document).to_yaml())
    return file
