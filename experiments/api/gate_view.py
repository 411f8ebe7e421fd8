"""What the API shows of maintenance: what would hurt now, and whether a step may be taken."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ldfi.experiments.api.view import View
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.domain.gates.upgrade_gate import Gate, GateVerdict
from ldfi.experiments.domain.gates.whatif import WhatIf
from ldfi.experiments.domain.judging.bystanders import Bystanders
from ldfi.experiments.domain.traffic.vital_signs import Sign


class MaintenanceView(View):
    """A maintenance window."""

    id: str = Field(description="By which routes and commands name it.", examples=["c41f0a9d3e72"])
    owner: str = Field(description="Whom to ask about it.", examples=["ann"])
    reason: str = Field(description="Why it was opened.", examples=["rolling upgrade of recordsdb"])
    down: list[str] = Field(
        description="Points, services or systems that are left alone, with *; empty: everything.",
        examples=[["recordsdb"]],
    )
    opened_at: float = Field(
        description="When it was opened (Unix seconds).", examples=[1767225600.0]
    )
    until: float = Field(
        description="When it ends by itself (Unix seconds).", examples=[1767225600.0]
    )
    seconds: float = Field(description="How long it was to stay open.")
    closed_at: float | None = Field(
        default=None,
        description="When somebody closed it before its time (Unix seconds); null: nobody has.",
        examples=[1767225600.0],
    )

    @classmethod
    def of(cls, window: Maintenance) -> MaintenanceView:
        """Show a window in the words of the API."""
        return cls.model_validate(window)


class WhatIfView(View):
    """With some points down: which single further failure hurts, is survived, or is unknown."""

    request_class: str = Field(description="The request class.", examples=["GET /boot"])
    down: list[str] = Field(
        description="Injection points that are taken to be down.",
        examples=[["api>http:GET:playlist/*"]],
    )
    already: str = Field(
        description="The outage by itself: failing, safe or open (unknown).", examples=["safe"]
    )
    hurts: list[str] = Field(
        description="Points at which one more failure is known to hurt.",
        examples=[["api>http:GET:popular/*"]],
    )
    safe: list[str] = Field(
        description="Points at which one more failure is proved to be survived.",
        examples=[["api>http:GET:ratings/*"]],
    )
    unknown: list[str] = Field(
        description="Points at which nobody knows what one more failure does.",
        examples=[["api>http:GET:titles/*"]],
    )
    anyway: list[str] = Field(
        description="Those of `hurts` that hurt with nothing down as well.",
        examples=[["api>http:GET:popular/*"]],
    )

    @classmethod
    def of(cls, answer: WhatIf) -> WhatIfView:
        """Show an answer in the words of the API."""
        return cls.model_validate(answer)


class SignView(View):
    """What traces of the last minute show of something that fails, or answers late."""

    name: str = Field(
        description="The service or system; a point where others of it are well.",
        examples=["playlist"],
    )
    state: Literal["failing", "late"] = Field(
        description="`failing`: calls to it fail; `late`: they take far longer than usual."
    )
    points: list[str] = Field(
        description="The calls at which this shows.", examples=[["api>http:GET:playlist/*"]]
    )
    calls: int = Field(description="The newest calls: of the last seconds, or the last few.")
    ailing: int = Field(description="How many of them failed by themselves, or took long.")
    latest: float = Field(
        description="When the newest of these came (Unix seconds).", examples=[1767225600.0]
    )
    trace_id: str = Field(
        description="The trace of the newest of these.",
        examples=["5b8efff798038103d269b633813fc60c"],
    )
    seconds: float | None = Field(description="How long those take that are late (median).")
    usual: float | None = Field(description="How long calls took over the last hour (median).")
    words: str = Field(
        description="The same, for people.", examples=["playlist fails: 9 of its 10 newest calls"]
    )

    @classmethod
    def of(cls, sign: Sign) -> SignView:
        """Show a sign in the words of the API."""
        return cls.model_validate(sign)


class GateView(View):
    """Whether something may be taken down now, on top of what is down already."""

    verdict: GateVerdict = Field(description="unknown: it is not proved to be safe.")
    down: list[str] = Field(
        description="The step, what open maintenance windows name, and what fails now.",
        examples=[["api>http:GET:playlist/*"]],
    )
    why: list[str] = Field(
        description="Reasons against it, or why nobody knows.",
        examples=[["GET /boot: one more failure would hurt: api>http:GET:popular/lists/*"]],
    )
    classes: list[WhatIfView] = Field(
        description="What one more failure would do to each request class that calls what goes "
        "down."
    )
    signs: list[SignView] = Field(
        description="Of what the classes concerned call: what fails now, and what answers late."
    )

    @classmethod
    def of(cls, answer: Gate) -> GateView:
        """Show an answer in the words of the API."""
        return cls.model_validate(answer)


class WatchedClass(View):
    """How a request class fares while something that it calls is down."""

    request_class: str = Field(description="The request class.", examples=["GET /boot"])
    requests: int = Field(description="Since the window was opened; a device that fails, once.")
    failures: int = Field(description="How many of `requests` failed.")
    hurt: str | None = Field(
        description="How it suffers, in words; null: as far as known, not.",
        examples=["9 of 40 requests that nobody injected into failed"],
    )

    @classmethod
    def of(cls, name: str, watched: Bystanders) -> WatchedClass:
        """Show what was watched of one class."""
        return cls(
            request_class=name,
            requests=watched.requests,
            failures=watched.failures,
            hurt=watched.hurt,
        )


class StepView(View):
    """A step of an upgrade, watched: those that it touches."""

    window: MaintenanceView = Field(description="The maintenance window that is watched.")
    open: bool = Field(description="Whether the window is still open.")
    classes: list[WatchedClass] = Field(description="Each request class that it touches.")
    suffers: list[str] = Field(
        description="Each class that suffers, and how; the guardrail that does not hold.",
        examples=[["GET /boot: 9 of 40 requests that nobody injected into failed"]],
    )
    signs: list[SignView] = Field(description="What fails or is late now, the step's own aside.")
