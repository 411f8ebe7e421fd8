"""URLs as strangers write them: what cannot be read of one is empty, and nothing raises."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final, NamedTuple
from urllib.parse import urlsplit

_PARTS: Final = re.compile(r"(?:([^:/?#]+):)?(?://[^/?#]*)?([^?#]*)(?:\?([^#]*))?", re.DOTALL)
"""RFC 3986, appendix B: it fits any text. Scheme, path, query."""


class Url(NamedTuple):
    """The parts of a URL; ``port`` is None where none is written, or no number up to 65535."""

    scheme: str = ""
    host: str = ""
    port: int | None = None
    path: str = ""
    query: str = ""


def split_url(url: str) -> Url:
    """Cut a URL into its parts; an authority that is none (``//[``, ``h:x``) has no host or no
    port."""
    try:
        parts = urlsplit(url)
    except ValueError:
        found = _PARTS.match(url)
        scheme, path, query = found.groups(default="") if found else ("", "", "")
        return Url(scheme.lower(), "", None, path, query)
    host, port = "", None
    with suppress(ValueError):
        host = parts.hostname or ""
    with suppress(ValueError):
        port = parts.port
    return Url(parts.scheme, host, port, parts.path, parts.query)
