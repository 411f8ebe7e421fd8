"""What may come in: text, ids, and documents that are taken at their word."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

LINE: Final = r"^[^\x00-\x1f\x7f]*$"
Line = Annotated[str, Field(pattern=LINE)]
"""No control characters: a database may not take them, and a terminal may obey them."""

Filter = Annotated[str, Field(pattern=LINE, min_length=1, max_length=1000)] | SkipJsonSchema[None]
"""What a list is to be cut down to; it may be left out, but "null" means nothing in a URL."""

Id = Annotated[str, Path(pattern=LINE, min_length=1, max_length=64, examples=["3f1c9a52b7de"])]


class Document(BaseModel):
    """What comes in as JSON: nothing is guessed, nothing is ignored."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class PerhapsReason(Document):
    """Why something is done, for those who say it: the whole document may be left out."""

    reason: Annotated[
        Line, Field(min_length=1, max_length=500, examples=["release 42 goes out"])
    ] = "no reason given"


UNSAID: Final = PerhapsReason()


class Reason(PerhapsReason):
    """Why something is done; it goes into the audit."""

    reason: Annotated[Line, Field(min_length=1, max_length=500, examples=["release 42 goes out"])]
