"""The ``baggage`` header at the edge: take our entry out, put our entry in, touch nothing else.

W3C Baggage, section 3. Whoever reads the header further in may be more lenient than the
specification: OpenTelemetry for Python percent-decodes names, lets the last of two entries win,
and of two headers sees the first alone. So an entry is ours by its *decoded* name, several headers
are one (RFC 9110, section 5.3), and only one entry of ours ever leaves the edge.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote_plus

from ldfi.fit.protocol.context import ENTRY

MAX_LENGTH: Final = 8192
"""Characters. OpenTelemetry drops the whole of a longer header (W3C Baggage, section 3.3.2)."""

_PREFIX = f"{ENTRY}="


def values(header: str) -> list[str]:
    """Read the values of our entries in a raw header, less their properties, in order."""
    if ENTRY not in header.lower() and "%" not in header:
        return []
    members = [member for member in header.split(",") if _is_ours(member)]
    return [member.partition("=")[2].partition(";")[0].strip() for member in members]


def find(header: str) -> str | None:
    """Read the value of our first entry in a raw header; None without any."""
    return next(iter(values(header)), None)


def without(header: str) -> str:
    """Remove every entry of ours from a header."""
    return ",".join(member for member in header.split(",") if not _is_ours(member))


def with_entry(header: str, value: str) -> str:
    """Put our entry in front of a header's others, where no limit on entries cuts it off."""
    return ",".join(filter(None, (_PREFIX + value, header)))


def spared(connection: str) -> str:
    """Take ``baggage`` out of what a ``Connection`` header lists: a proxy further in would take it
    out of the request (RFC 9110, section 7.6.1), and clients do not decide on what an edge adds."""
    listed = connection.split(",")
    kept = [name for name in listed if name.strip().lower() != "baggage"]
    return connection if len(kept) == len(listed) else ",".join(kept)


def _is_ours(member: str) -> bool:
    name = member.partition("=")[0]
    if "%" in name or "+" in name:
        name = unquote_plus(name)
    return name.strip().lower() == ENTRY
