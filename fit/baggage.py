"""The ``baggage`` header at the edge: take our entry out, put our entry in, touch nothing else."""

from __future__ import annotations

from fit.context import ENTRY

_PREFIX = f"{ENTRY}="


def find(header: str) -> str | None:
    """The value of our entry in a raw ``baggage`` header (W3C Baggage, section 3.3)."""
    for member in header.split(","):
        name, equals, value = member.partition("=")
        if equals and name.strip() == ENTRY:
            return value.partition(";")[0].strip()
    return None


def without(header: str) -> str:
    """The header less every entry of ours."""
    members = header.split(",")
    kept = [member for member in members if member.partition("=")[0].strip() != ENTRY]
    return ",".join(kept)


def with_entry(header: str, value: str) -> str:
    """The header with our entry put in front, where no size limit cuts it off."""
    return ",".join(filter(None, (_PREFIX + value, header)))
