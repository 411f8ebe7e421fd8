"""license: the right to play one title on one device."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ldfi import fit
from ldfi.demo.cache import Cache
from ldfi.demo.fallback import within

LOWEST_QUALITY = "480p"

_keys: Cache[str] = Cache("keys", seconds=3600.0)
_keys.put("current", "k-2")


async def license_for(request: Request) -> Response:
    """Grant a licence: without the current key an older one, without device data the lowest
    quality."""
    key = await within(_keys.get("current"), None) or "k-1"
    quality = await within(device_quality(request.query_params.get("device", "")), LOWEST_QUALITY)
    return JSONResponse({"key": key, "quality": quality})


@fit.point("function", "device_quality")
async def device_quality(device: str) -> str:
    """Choose the best picture a device is trusted with."""
    return "2160p" if device == "tv" else "1080p"


routes = [Route("/licenses/{number:int}", license_for)]
