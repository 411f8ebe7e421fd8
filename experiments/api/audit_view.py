"""What the API shows of the audit."""

from __future__ import annotations

from pydantic import Field

from ldfi.experiments.api.view import View
from ldfi.experiments.store.schema import AuditRow


class AuditSubject(View):
    """What an experiment or a finding is about."""

    request_class: str = Field(description="The request class.", examples=["GET /boot"])
    faults: list[str] = Field(
        description="The faults, KIND@POINT or down@SYSTEM.",
        examples=[["error@api>http:GET:playlist/*"]],
    )
    said: str = Field(
        description="The failures, in words.",
        examples=["api's call to playlist (GET /*) fails"],
    )


class AuditView(View):
    """Who did what, to what, why and when."""

    id: int = Field(description="Its number: later entries have larger ones.")
    at: float = Field(description="When (Unix seconds).", examples=[1767225600.0])
    who: str = Field(
        description="The name of the token that did it; the service itself is `ldfi`.",
        examples=["kim"],
    )
    what: str = Field(
        description="What was done, in a few fixed words: `halt`, `campaign started`.",
        examples=["halt"],
    )
    subject: str = Field(
        description="The id of what it was done to; empty: it was done to everything.",
        examples=[""],
    )
    why: str = Field(description="The reason given; empty: none.", examples=["checkout is down"])
    about: AuditSubject | None = Field(
        default=None, description="Of what was done to an experiment or a finding."
    )

    @classmethod
    def of(cls, row: AuditRow, about: AuditSubject | None = None) -> AuditView:
        """Show a row in the words of the API."""
        view = cls.model_validate(row)
        view.about = about
        return view
