"""Texts in a shell script: each is one word, one line of comment or one default, whatever is in it.

A script is put together from these and from what is written here, and from nothing else.
"""

from __future__ import annotations

import shlex

from ldfi.lineage.text import clean


def word(text: str) -> str:
    """Write a text as one word. A shell has no NUL, so there is none in it."""
    return shlex.quote(text.replace("\0", ""))


def comment(text: str) -> str:
    """Write a text as one line of comment."""
    return f"# {clean(text)}"


def default(variable: str, text: str) -> str:
    """Give a variable a value, where it has none."""
    return f'[ -n "${{{variable}:-}}" ] || {variable}={word(text)}'


def wanted(variable: str, why: str) -> str:
    """Refuse to go on where a variable has no value. ``why`` is ours, and plain words."""
    return f': "${{{variable}:?{why}}}"'
