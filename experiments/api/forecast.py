"""What a campaign could decide, asked before it starts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.deprecated import noting
from ldfi.experiments.api.forecast_view import ForecastView
from ldfi.experiments.api.new_campaign import NewCampaign
from ldfi.experiments.api.routes import GuardedRoute
from ldfi.experiments.api.service import Running, forecast_of

router = APIRouter(prefix="/api/v1/forecast", tags=["campaigns"], route_class=GuardedRoute)


@router.post("")
async def would_start(
    new: Annotated[NewCampaign, Depends(noting(NewCampaign))], engine: Running, _caller: Viewer
) -> ForecastView:
    """Return what a campaign could decide, by the traffic there is; nothing is started."""
    return ForecastView.of(forecast_of(engine, new.definition(), new))
