"""What there is to watch: a catalogue made of two lists of words, and picks from it.

Everything is a function of its arguments, so that every run and every process agrees.
"""

from __future__ import annotations

from typing import Any, Final
from zlib import crc32

Title = dict[str, Any]

ADJECTIVES: Final = (
    "Silent", "Crimson", "Distant", "Broken", "Golden", "Hidden", "Frozen", "Restless",
    "Burning", "Velvet", "Hollow", "Electric", "Gentle", "Midnight", "Paper",
)  # fmt: skip
NOUNS: Final = (
    "Harbour", "Orchard", "Engine", "Mountain", "Letters", "Kingdom", "Shoreline", "Witness",
    "Carnival", "Meridian", "Garden", "Lighthouse",
)  # fmt: skip

TITLES: Final[dict[int, Title]] = {
    number: {
        "id": number,
        "name": f"{ADJECTIVES[number % len(ADJECTIVES)]} {NOUNS[number % len(NOUNS)]}",
        "minutes": 40 + number * 7 % 90,
    }
    for number in range(1, 61)
}


def title(number: int) -> Title:
    """Find the title of that number; one without a name where there is none."""
    return TITLES.get(number) or skeleton(number)


def skeleton(number: int) -> Title:
    """Make what can be shown of a title nobody could look up."""
    return {"id": number, "name": f"Title {number}", "minutes": None}


def pick(key: str, count: int) -> list[int]:
    """Pick ``count`` title numbers that are always the same for the same ``key``."""
    start = crc32(key.encode())
    return [1 + (start + 7 * step) % len(TITLES) for step in range(count)]
