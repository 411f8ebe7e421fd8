"""profiles: who a member is: name, preferences, and what they may watch."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ldfi import fit
from ldfi.demo.cache import Cache
from ldfi.demo.fallback import within

STRICTEST = "all ages"

_preferences: Cache[dict[str, object]] = Cache("preferences", seconds=5.0)


async def profile(request: Request) -> Response:
    """Show a member's profile. What cannot be had is replaced by the careful default."""
    member = request.path_params["member"]
    preferences = await within(_preferences.get(member), None)
    if preferences is None:
        preferences = stored_preferences(member)
        _preferences.put(member, preferences)
    rating = await within(maturity(member), STRICTEST)
    return JSONResponse(
        {"name": f"Member {member}", "preferences": preferences, "maturity": rating}
    )


def stored_preferences(member: str) -> dict[str, object]:
    """Read what the member chose; kept beside the profile, so it cannot fail by itself."""
    return {"language": "en", "autoplay": member.endswith("0")}


@fit.point("function", "maturity")
async def maturity(member: str) -> str:
    """Find the strictest rating a member may watch."""
    return "adults" if sum(member.encode()) % 3 else "teens"


routes = [Route("/profiles/{member}", profile)]
