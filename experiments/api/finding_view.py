"""What the API shows of a finding."""

from __future__ import annotations

from pydantic import Field

from ldfi.experiments.api.view import View


class FindingView(View):
    """A minimal failing set: these faults together hurt, and none of them can be left out."""

    id: str = Field(
        description="Its id: the same set of faults of the same class always has the same.",
        examples=["3f1c9a52b7de"],
    )
    request_class: str = Field(
        description="The request class that they hurt.", examples=["GET /boot"]
    )
    faults: list[str] = Field(
        description="The faults, KIND@POINT or down@SYSTEM, all of which it takes.",
        examples=[["error@api>http:GET:playlist/*"]],
    )
    state: str = Field(
        description="What has become of it: `suspected` until confirmed, `open`, "
        "`acknowledged`, `fixed`, `regressed`, `refuted`, `superseded` by a part of "
        "it, or `killed`: a process seems to have died of it.",
        examples=["open", "acknowledged", "fixed", "suspected", "killed"],
    )
    found_at: float = Field(
        description="When it was first found (Unix seconds).", examples=[1767225600.0]
    )
    verified_at: float | None = Field(
        description="When it was last tried again, or said to be survived (Unix seconds); null: "
        "never.",
        examples=[1767225600.0],
    )
    campaign_id: str = Field(
        description="The campaign that was the first to find it.", examples=["0b9c6a7e2f10"]
    )
    experiment_id: str = Field(
        description="The experiment that found it.", examples=["7d20c4e8b1f3"]
    )
    traces: list[str] = Field(
        description="Trace ids of requests that failed under it, as many as are kept.",
        examples=[["5b8efff798038103d269b633813fc60c"]],
    )
    note: str | None = Field(
        description="What whoever acknowledged it said.", examples=["ann adds a fallback"]
    )
    tracker_url: str | None = Field(
        description="Where people work on it.", examples=["https://tracker.example.org/SHOP-42"]
    )
    sentence: str = Field(
        default="",
        description="What it is, in a sentence; the title of its page.",
        examples=["GET /play is lost when license does not answer"],
    )
    owners: list[str] = Field(
        default=[],
        description="Who owns the service that lacks something; empty: nobody says.",
        examples=[["team-api"]],
    )
    share: float | None = Field(
        default=None,
        description="Which part of all requests its class is; null: nobody asks for anything.",
        examples=[0.31],
    )
