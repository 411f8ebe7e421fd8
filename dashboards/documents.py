"""From a form to a document of the API, so that both are checked by the same rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ldfi.experiments.api.problems import Problem

Model = TypeVar("Model", bound=BaseModel)


def read_as(model: type[Model], fields: Mapping[str, Any]) -> tuple[Model | None, dict[str, str]]:
    """Read the document that these texts make, or say what is wrong with each field, by its name.

    What lies deeper is named with dots: ``calendar.hours``. What is wrong with the document as a
    whole has an empty name.
    """
    try:
        return model.model_validate(fields, strict=False), {}
    except ValidationError as error:
        problems: dict[str, str] = {}
        for each in error.errors():
            message = each["msg"].removeprefix("Value error, ")
            problems.setdefault(".".join(map(str, each["loc"])), message)
        return None, problems


def required(model: type[Model], fields: Mapping[str, Any]) -> Model:
    """Read a form so small that its problem is a page. Raises Problem 422."""
    document, problems = read_as(model, fields)
    if document is None:
        said = "; ".join(f"{name}: {what}" if name else what for name, what in problems.items())
        raise Problem(422, "invalid", said)
    return document
