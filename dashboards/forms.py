"""What a form has sent: ``application/x-www-form-urlencoded``, the only kind our pages send.

It is read as a document of the API, so that both are checked by the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import parse_qs

from fastapi import Depends, Request
from pydantic import BaseModel, ValidationError

from ldfi.error_words import fault, items, place
from ldfi.experiments.api.problems import Problem

MEDIA_TYPE: Final = "application/x-www-form-urlencoded"
MAX_FIELDS: Final = 2_000

Model = TypeVar("Model", bound=BaseModel)


class Form:
    """The fields of a form, by name. Text comes without space around it."""

    def __init__(self, fields: dict[str, list[str]]) -> None:
        self._fields = fields

    def text(self, name: str, default: str = "") -> str:
        """Return the first value of a field."""
        return self._fields.get(name, [default])[0].strip()

    def every(self, name: str) -> list[str]:
        """List the values of a field that may be there many times, less those left empty."""
        return [each.strip() for each in self._fields.get(name, []) if each.strip()]

    def lines(self, name: str) -> list[str]:
        """List the lines of a field that has some, less those left empty."""
        return [each.strip() for each in self.text(name).splitlines() if each.strip()]


async def read_form(request: Request) -> Form:
    """Read the form that a request carries. Raises Problem 415 or 422."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if body and kind != MEDIA_TYPE:
        raise Problem(415, "unsupported-media-type", f"{kind!r}: send {MEDIA_TYPE}")
    try:
        fields = parse_qs(
            body.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_FIELDS,
        )
    except ValueError as error:
        raise Problem(422, "invalid", "the form cannot be read; load the page again") from error
    return Form(fields)


Submitted = Annotated[Form, Depends(read_form)]


def read_as(model: type[Model], fields: Mapping[str, Any]) -> tuple[Model | None, dict[str, str]]:
    """Read the document that these texts make, or say what is wrong with each field, by its name.

    What lies deeper is named with dots: ``calendar.hours``. What is wrong with the document as a
    whole has an empty name.
    """
    try:
        return model.model_validate(fields, strict=False), {}
    except ValidationError as error:
        problems: dict[str, str] = {}
        for each in items(error):
            problems.setdefault(place(each["loc"], "."), fault(each, shows=False))
        return None, problems


def required(model: type[Model], fields: Mapping[str, Any]) -> Model:
    """Read a form so small that its problem is a page. Raises Problem 422."""
    document, problems = read_as(model, fields)
    if document is None:
        said = "; ".join(f"{name}: {what}" if name else what for name, what in problems.items())
        raise Problem(422, "invalid", said)
    return document
