"""What the API shows of a request class."""

from __future__ import annotations

from pydantic import Field

from ldfi.experiments.api.view import View
from ldfi.experiments.domain.traffic.catalogue import KnownClass
from ldfi.experiments.domain.traffic.injectors import NO_CONTEXT, Injectors
from ldfi.experiments.domain.traffic.observed_kinds import shown_often
from ldfi.experiments.domain.traffic.point_shares import shares
from ldfi.lineage.unseen_calls import NOTHING, Unseen


class VarietyView(View):
    """One way in which requests of a class go."""

    requests: int = Field(description="How many of those that were seen went so.")
    support: list[str] = Field(
        description="What they rely on.", examples=[["api>http:GET:playlist/*"]]
    )


class UnseenView(View):
    """What cannot be seen of some requests."""

    share: float = Field(description="The largest share of calls somewhere that is not seen.")
    at_most: float = Field(
        description="The same with what may be theirs, at its upper bound of 95 %."
    )
    calls: int = Field(description="All calls of theirs that are known.")
    line: str = Field(
        description="In words; empty: nothing is known to be missing.",
        examples=[
            "cannot see: 2 calls of checkout at currency run in traces of their own, 7 % of"
            " arrivals there"
        ],
    )
    advice: list[str] = Field(
        description="What to change.", examples=[["currency: install the propagator tracecontext"]]
    )

    @classmethod
    def of(cls, unseen: Unseen) -> UnseenView:
        """Show a figure."""
        return cls(
            share=unseen.share,
            at_most=unseen.at_most,
            calls=unseen.calls,
            line=unseen.line,
            advice=list(unseen.advice()),
        )


class ClassView(View):
    """A request class: its predicate in words, its traffic, and what it usually relies on."""

    name: str = Field(
        description="Its exact name, by which routes and commands take it.", examples=["GET /boot"]
    )
    service: str = Field(description="The service at which its requests enter.", examples=["api"])
    version: int = Field(
        description="Goes up whenever its lineage changes; evidence of older versions no longer "
        "counts."
    )
    good: int = Field(
        description="Good requests in this version that nobody injected into: its evidence."
    )
    per_minute: float = Field(description="Requests a minute of late.")
    success_rate: float = Field(
        description="Share (0 to 1) of good outcomes among the newest that nobody injected "
        "into; 1 before there are any."
    )
    consistency: float = Field(
        description="Share (0 to 1) of the good requests of the last sample that rely on "
        "exactly what is expected."
    )
    hit_rate: float = Field(
        description="Share (0 to 1) of the expected points that a request reached, on average."
    )
    sample: int = Field(description="Good requests from which `consistency` was taken.")
    unfit: str | None = Field(default=None, description="Why it may not be explored by default.")
    first_seen: float = Field(
        description="When its first sample began (Unix seconds).", examples=[1767225600.0]
    )
    last_seen: float = Field(
        description="When its newest request came in (Unix seconds).", examples=[1767225600.0]
    )
    support: list[str] = Field(
        description="Injection points that its good requests usually rely on.",
        examples=[["api>http:GET:playlist/*"]],
    )
    shared: dict[str, list[str]] = Field(description="Systems that several points reach.")
    shown: dict[str, list[str]] = Field(
        default={},
        description="By point, how its calls failed by themselves, the commonest kind first: "
        "campaigns try them there without being asked.",
    )
    no_injector: dict[str, str] = Field(
        default={},
        description="Points that no injector has reported, where others of their service are: "
        "campaigns do not try them. By point, what to install.",
    )
    shares: dict[str, float] = Field(
        default={},
        description="Points that only some of its requests call: the share of them that do.",
    )
    not_looked_at: dict[str, str] = Field(
        default={},
        description="What happens in its requests and is not a part of their outcome, and why.",
    )

    unseen: UnseenView = Field(
        default_factory=lambda: UnseenView.of(NOTHING),
        description="What cannot be seen of its requests.",
    )
    varieties: list[VarietyView] = Field(
        default=[],
        description="Of a class that may not be explored: the ways in which its requests go. "
        "A replay can choose one, a live experiment cannot.",
    )

    @classmethod
    def of(cls, known: KnownClass, now: float, injectors: Injectors) -> ClassView:
        """Show it as it stands now."""
        traffic = known.traffic
        return cls(
            name=known.name,
            service=known.service,
            version=known.version,
            good=traffic.good,
            per_minute=known.rate(now),
            success_rate=traffic.success_rate(),
            consistency=known.consistency,
            hit_rate=known.hit_rate,
            sample=known.sample,
            unfit=known.unfit_for(),
            first_seen=known.first_seen,
            last_seen=known.last_seen,
            support=sorted(traffic.usual_support() | traffic.taken_in),
            shared={
                system: sorted(points)
                for system, points in sorted(traffic.topology.shared().items())
            },
            shown={
                point: list(kinds)
                for point, kinds in shown_often(
                    (each.failed, each.requests) for each in traffic.survived()
                ).items()
            },
            no_injector=injectors.without(traffic.usually_called())
            | dict.fromkeys(sorted(traffic.taken_in - traffic.usually_called()), NO_CONTEXT),
            shares=shares(traffic),
            not_looked_at=traffic.not_looked_at(),
            unseen=UnseenView.of(traffic.unseen),
            varieties=[
                VarietyView(requests=each.requests, support=sorted(each.support))
                for each in known.varieties()
            ],
        )
