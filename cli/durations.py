"""Lengths of time as people type them: 90s, 15m, 2h, 1d."""

from __future__ import annotations

import re
from typing import Final

import typer

_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def seconds(text: str, option: str) -> float:
    """Read what was typed for an option. Raises typer.BadParameter."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text.strip())
    if found is None or not float(found[1]):
        raise typer.BadParameter(
            f"{text!r} is no length of time: write 90s, 15m, 2h or 1d", param_hint=option
        )
    return float(found[1]) * _UNITS[found[2]]
