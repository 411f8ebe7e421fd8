"""What may come in: text, ids, and documents that are taken at their word."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

LINE: Final = r"^[^\x00-\x1f\x7f]*$"
Line = Annotated[str, Field(pattern=LINE)]
"""No control characters: a database may not take them, and a terminal may obey them."""

Why = Annotated[
    Line,
    Field(
        description="Why; it goes into the audit.",
        min_length=1,
        max_length=500,
        examples=["release 42 goes out"],
    ),
]

Filter = Annotated[str, Field(pattern=LINE, min_length=1, max_length=1000)] | SkipJsonSchema[None]
"""What a list is to be cut down to; it may be left out, but "null" means nothing in a URL."""

Id = Annotated[
    str,
    Path(
        pattern=LINE,
        min_length=1,
        max_length=64,
        description="Its id, whole: `GET /api/v1/ids` finds it by how it begins.",
        examples=["3f1c9a52b7de"],
    ),
]


class Document(BaseModel):
    """What comes in as JSON: nothing is guessed, nothing is ignored."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    def old_forms(self) -> frozenset[str]:
        """Name the fields in which something was said in an old form that is still taken."""
        return frozenset()


class AsRead(Document):
    """What makes a thing. The thing as it is read makes another one like it: ``filled_in`` is what
    the service says of it by itself, and is left out."""

    filled_in: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _leave_out(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if name not in cls.filled_in}


def all_but(view: type[BaseModel], made_by: set[str]) -> frozenset[str]:
    """List what is read of a thing and nobody asks for: all but what it is ``made_by``."""
    return frozenset(view.model_fields) - made_by


class PerhapsReason(Document):
    """Why something is done, for those who say it: the whole document may be left out."""

    reason: Why = "no reason given"


UNSAID: Final = PerhapsReason()


class Reason(PerhapsReason):
    """Why something is done; it goes into the audit."""

    reason: Why
