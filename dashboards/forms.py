"""What a form has sent: ``application/x-www-form-urlencoded``, the only kind our pages send."""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import parse_qs

from fastapi import Depends, Request

from ldfi.experiments.api.problems import Problem

MEDIA_TYPE: Final = "application/x-www-form-urlencoded"
MAX_FIELDS: Final = 2_000


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
