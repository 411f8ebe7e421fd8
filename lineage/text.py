"""Text that strangers wrote: cleaned once, where it comes in.

A path may hold a NUL, which PostgreSQL refuses, a line feed, which ends a line of whatever script
it is put in, an escape that a terminal obeys, half of a character, which nobody can encode, or a
sign that has all around it shown in another order, so that it reads as what it is not.
"""

from __future__ import annotations

import re
from typing import Final

INSTEAD: Final = "\ufffd"
"""Stands for each character that was taken out."""

_BIDIRECTIONAL: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Letters of any script keep their own direction without these."""

_CONTROL: Final = re.compile(f"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{_BIDIRECTIONAL}]")


def clean(text: str) -> str:
    """Replace control characters, also those of direction, ends of lines and halves of
    characters."""
    return text if text.isprintable() else _CONTROL.sub(INSTEAD, text)
