"""Lengths of time as people type them: 90s, 15m, 2h, 1d."""

from __future__ import annotations

import re
from typing import Final

import typer

_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
LONGEST: Final = 36_500 * 86_400.0
"""Seconds: a century. Times beyond it are no times any more, or not even numbers."""


def seconds(text: str, option: str) -> float:
    """Read what was typed for an option. Raises typer.BadParameter."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text.strip())
    if found is None or not float(found[1]):
        raise typer.BadParameter(
            f"{text!r} is no length of time: write 90s, 15m, 2h or 1d", param_hint=option
        )
    length = float(found[1]) * _UNITS[found[2]]
    if length > LONGEST:
        said = text if len(text) < 40 else f"{text[:20]}… ({len(text)} characters)"
        raise typer.BadParameter(f"must be at most 36500d, got {said!r}", param_hint=option)
    return length
