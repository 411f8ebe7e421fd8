"""From a form to a document of the API, so that both are checked by the same rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

Model = TypeVar("Model", bound=BaseModel)


def read_as(model: type[Model], fields: Mapping[str, Any]) -> tuple[Model | None, dict[str, str]]:
    """The document that these texts make, or what is wrong with each field, by its name.

    What lies deeper is named with dots: ``calendar.hours``. What is wrong with the document as a
    whole has an empty name.
    """
    try:
        return model.model_validate_strings(fields), {}
    except ValidationError as error:
        problems: dict[str, str] = {}
        for each in error.errors():
            message = each["msg"].removeprefix("Value error, ")
            problems.setdefault(".".join(map(str, each["loc"])), message)
        return None, problems
