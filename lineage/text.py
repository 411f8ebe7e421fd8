"""Text that strangers wrote: cleaned once, where it comes in.

A path may hold a NUL, which PostgreSQL refuses, a line feed, which ends a line of whatever script
it is put in, an escape that a terminal obeys, or half of a character, which nobody can encode.
"""

from __future__ import annotations

import re
from typing import Final

INSTEAD: Final = "\ufffd"
"""Stands for each character that was taken out."""

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def clean(text: str) -> str:
    """Replace control characters, ends of lines and halves of characters."""
    return text if text.isprintable() else _CONTROL.sub(INSTEAD, text)
