"""Scripts and styles: served from this package, and named by what is in them.

The address of a file carries a digest of its content, so browsers may keep it for good, and a new
release is seen at once.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any, Final

from fastapi import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from ldfi.dashboards.csp import confined

FOLDER: Final = Path(__file__).parent / "static"
PREFIX: Final = "/static"


class Assets(StaticFiles):
    """The files of :data:`FOLDER`."""

    def __init__(self) -> None:
        super().__init__(directory=FOLDER)

    def file_response(self, *arguments: Any, **named: Any) -> Response:
        """Serve a file, to be kept for good where it was asked for by its digest."""
        response = super().file_response(*arguments, **named)
        scope: Scope = named["scope"] if "scope" in named else arguments[2]
        by_digest = scope["query_string"].startswith(b"v=")
        response.headers["Cache-Control"] = (
            "public, max-age=31536000, immutable" if by_digest else "no-cache"
        )
        return confined(response)


@cache
def asset(name: str) -> str:
    """Name the address of a file. Raises FileNotFoundError for one that is not there."""
    digest = hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()
    return f"{PREFIX}/{name}?v={digest[:12]}"
