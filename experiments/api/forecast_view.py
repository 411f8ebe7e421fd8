"""What the API shows of the forecast of a campaign."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ldfi.experiments.api.view import View
from ldfi.experiments.domain.gates.feasibility import Decides
from ldfi.experiments.scheduler.forecast import Forecast


class RarestView(View):
    """What a campaign could decide at the point of a class that the fewest requests call."""

    share: float = Field(description="The share of requests that call it.", examples=[0.12])
    expected: float = Field(description="Treated outcomes of these, in a longer window.")
    seconds: float | None = Field(description="Until either verdict is reached, on average.")
    decides: Decides = Field(
        description="Verdicts that can be reached there: both, only `harmful` (`harm`), or nothing."
    )


class EstimateView(View):
    """What a campaign could decide on one request class, by the traffic that was seen."""

    request_class: str = Field(description="The request class.", examples=["GET /boot"])
    per_minute: float = Field(description="Requests of which the outcome came to be known.")
    expected: float = Field(description="Treated outcomes to be expected within one window.")
    harmful: int | None = Field(description="Treated outcomes that `harmful` takes; null: never.")
    tolerated: int | None = Field(description="The same for `tolerated`.")
    seconds: float | None = Field(description="Until either verdict is reached, on average.")
    decides: Decides = Field(
        description="Verdicts that can be reached: both, only `harmful` (`harm`), or nothing."
    )
    words: str = Field(
        description="The same, for people.",
        examples=["GET /boot: 40 of 60 outcomes within one window decide"],
    )
    rarest: RarestView | None = Field(
        default=None, description="The same at the point that the fewest call; null: all call all."
    )


class ForecastView(View):
    """How a campaign would start now."""

    why_not: str | None = Field(description="Why it may not start; null: it may.")
    settings: dict[str, Any] = Field(description="With what the profile has chosen.")
    classes: list[EstimateView] = Field(description="Those that were seen for long enough.")

    @classmethod
    def of(cls, forecast: Forecast) -> ForecastView:
        """Show it in the words of the API."""
        return cls(
            why_not=forecast.why_not,
            settings=forecast.definition.settings.to_json(),
            classes=[EstimateView(**each.to_json()) for each in forecast.estimates],
        )
