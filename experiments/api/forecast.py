"""What a campaign could decide, asked before it starts."""

from __future__ import annotations

from fastapi import APIRouter

from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.new_campaign import NewCampaign
from ldfi.experiments.api.routes import GuardedRoute
from ldfi.experiments.api.service import Running, forecast_of
from ldfi.experiments.api.views import ForecastView

router = APIRouter(prefix="/api/v1/forecast", tags=["campaigns"], route_class=GuardedRoute)


@router.post("")
async def would_start(new: NewCampaign, engine: Running, _caller: Viewer) -> ForecastView:
    """Say what a campaign could decide, by the traffic there is; nothing is started."""
    return ForecastView.of(forecast_of(engine, new.definition(), new))
