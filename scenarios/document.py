"""YAML that others wrote, read into plain values.

A file may make PyYAML fail in ways that are none of its own errors: a date that does not exist, a
number of a hundred thousand digits, brackets without end. And a few lines whose aliases refer to
each other can stand for more than any memory holds.
"""

from __future__ import annotations

from typing import Final

import yaml

LARGEST: Final = 100_000
"""Values in one document, with those that aliases stand for."""

DEEPEST: Final = 100
"""How far values may be nested."""


def load(text: str) -> object:
    """Read a document. Raises yaml.YAMLError, whatever it is that is wrong with it."""
    try:
        document = yaml.safe_load(text)
        _check(document)
    except yaml.YAMLError:
        raise
    except RecursionError as error:
        raise yaml.YAMLError("it is nested too deeply") from error
    except Exception as error:
        raise yaml.YAMLError(f"it holds what is not a value: {error}") from error
    return document


def _check(document: object) -> None:
    """Refuse what is too much. Raises YAMLError."""
    pending, seen = [(document, 0)], 0
    while pending:
        value, depth = pending.pop()
        seen += 1
        if seen > LARGEST:
            raise yaml.YAMLError(f"it holds more than {LARGEST} values")
        if depth > DEEPEST:
            raise yaml.YAMLError("it is nested too deeply")
        if isinstance(value, dict):
            pending += [(each, depth + 1) for pair in value.items() for each in pair]
        elif isinstance(value, list | tuple | set):
            pending += [(each, depth + 1) for each in value]
        elif isinstance(value, str):
            value.encode()
