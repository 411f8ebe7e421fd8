"""Scripts and styles: served from this package, and named by what is in them.

The address of a file carries a digest of its content, so browsers may keep it for good, and a new
release is seen at once. Large scripts of others are kept as ``NAME.gz`` and sent as they are to
whoever takes gzip, which every browser does: a third of the bytes, here and on the way.
"""

from __future__ import annotations

import gzip
import hashlib
import os
from functools import cache
from mimetypes import guess_type
from pathlib import Path
from typing import Any, Final

from fastapi import Response
from starlette.datastructures import Headers
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from ldfi.dashboards.csp import confined

FOLDER: Final = Path(__file__).parent / "static"
PREFIX: Final = "/static"
PACKED: Final = ".gz"


class Assets(StaticFiles):
    """The files of :data:`FOLDER`."""

    def __init__(self) -> None:
        super().__init__(directory=FOLDER)

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        """Find a file by its name, or what it is packed in."""
        found = super().lookup_path(path)
        return found if found[1] is not None else super().lookup_path(path + PACKED)

    def file_response(self, *arguments: Any, **named: Any) -> Response:
        """Serve a file, to be kept for good where it was asked for by its digest."""
        path = Path(named["full_path"] if "full_path" in named else arguments[0])
        scope: Scope = named["scope"] if "scope" in named else arguments[2]
        response: Response = super().file_response(*arguments, **named)
        if path.suffix == PACKED:
            if _takes_gzip(Headers(scope=scope)):
                response.headers["Content-Encoding"] = "gzip"
            elif response.status_code == 200:
                kind = guess_type(path)[0]
                response = Response(gzip.decompress(path.read_bytes()), media_type=kind)
            response.headers["Vary"] = "Accept-Encoding"
        by_digest = scope["query_string"].startswith(b"v=")
        response.headers["Cache-Control"] = (
            "public, max-age=31536000, immutable" if by_digest else "no-cache"
        )
        return confined(response)


def content(name: str) -> bytes:
    """Read a file of :data:`FOLDER`, unpacked. Raises FileNotFoundError where it is not there."""
    packed = FOLDER / (name + PACKED)
    return gzip.decompress(packed.read_bytes()) if packed.exists() else (FOLDER / name).read_bytes()


@cache
def asset(name: str) -> str:
    """Name the address of a file. Raises FileNotFoundError for one that is not there."""
    return f"{PREFIX}/{name}?v={hashlib.sha256(content(name)).hexdigest()[:12]}"


def _takes_gzip(headers: Headers) -> bool:
    """Tell whether whoever asks takes gzip (RFC 9110, section 12.5.3)."""
    weights: dict[str, float] = {}
    for part in headers.get("accept-encoding", "").lower().split(","):
        coding, _, weight = part.replace(" ", "").partition(";q=")
        try:
            weights[coding] = float(weight or 1)
        except ValueError:
            weights[coding] = 0.0
    return weights.get("gzip", weights.get("*", 0.0)) > 0
