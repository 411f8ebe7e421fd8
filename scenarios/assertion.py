"""What a good answer to a scenario's request is, where no device is there to say so."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from ldfi.scenarios.replay import ANYTHING, Assertion


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"no regular expression: {error}") from error
    return text


class Expected(BaseModel):
    """What a good answer looks like; all of it must hold."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    status: list[Annotated[int, Field(ge=100, le=599)]] | None = Field(
        default=None, description="Good statuses; none given: 200 to 299."
    )
    body_contains: str | None = Field(default=None, description="Text in the body.")
    body_matches: Annotated[str, AfterValidator(_expression)] | None = Field(
        default=None, description="A regular expression (Python's) that is found in the body."
    )
    json_path: str | None = Field(
        default=None, description="A query (RFC 9535) on a JSON body; it must find something."
    )
    equals: JsonValue = Field(
        default=None, description="What all that `json_path` finds must equal; left out: not null."
    )
    degraded_matches: Annotated[str, AfterValidator(_expression)] | None = Field(
        default=None,
        description="A regular expression that is found in the body of an answer which is accepted "
        "although something is missing from it.",
    )
    max_seconds: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="Until the whole answer is there."
    )
    hidden: bool = Field(
        default=False,
        description="The device saw a failure that neither the status nor the time showed. As "
        "long as nothing is asserted of the body, a replay that goes well proves nothing.",
    )

    @property
    def blind(self) -> bool:
        """Return whether it would take an answer that hurts for a good one."""
        return self.hidden and not (self.body_contains or self.body_matches or self.json_path)

    def assertion(self) -> Assertion:
        """Make the assertion that a replay checks. Raises InvalidReplay for a ``json_path`` that
        is none."""
        status = tuple(self.status) if self.status is not None else range(200, 300)
        equals = ANYTHING if self.equals is None else self.equals
        return Assertion(
            status=status,
            body_contains=self.body_contains,
            body_matches=self.body_matches,
            json_path=self.json_path,
            equals=equals,
            max_seconds=self.max_seconds,
            degraded_matches=self.degraded_matches,
        )
