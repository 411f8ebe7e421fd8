"""Examples of whole bodies, put together of those of their fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

Schema = Mapping[str, Any]

_DEPTH: Final = 6
"""Schemas within schemas; what is deeper, calls within calls say, is left empty."""

_PLAIN: Final[Mapping[str, Any]] = {"integer": 3, "number": 0.5, "boolean": False, "object": {}}


def example(body: Any) -> dict[str, Any]:
    """Return what a route's ``responses`` say of an answer whose shape is not in its type."""
    return {"content": {"application/json": {"example": body}}}


def example_of(schema: Schema, components: Mapping[str, Schema], depth: int = 0) -> Any:
    """Return a value that a schema describes: its own example, or one made of those of its parts.

    ``components``: schemas by their names. Raises KeyError for text that has no example anywhere,
    which would say nothing.
    """
    if schema.get("examples"):
        return schema["examples"][0]
    if "$ref" in schema:
        return example_of(components[schema["$ref"].rpartition("/")[2]], components, depth + 1)
    if "anyOf" in schema:
        return _of_choices(schema["anyOf"], components, depth)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "array":
        items = schema["items"]
        return [] if depth > _DEPTH else [example_of(items, components, depth + 1)]
    if "properties" in schema:
        parts = schema["properties"].items()
        return {name: _part(name, part, components, depth) for name, part in parts}
    if "default" in schema or "type" not in schema:
        return schema.get("default")
    return schema.get("minimum", _PLAIN[schema["type"]])


def _of_choices(choices: Sequence[Schema], components: Mapping[str, Schema], depth: int) -> Any:
    """Return an example of the first choice that has one, or null where that is one of them."""
    try:
        return example_of(choices[0], components, depth)
    except KeyError:
        if {"type": "null"} not in choices:
            raise
        return None


def _part(name: str, part: Schema, components: Mapping[str, Schema], depth: int) -> Any:
    """Return the example of a property."""
    try:
        return example_of(part, components, depth)
    except KeyError as error:
        raise KeyError(f"{name}: {error.args[0]}") from error
