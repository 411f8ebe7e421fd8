"""spelling: what the member may have meant."""

from __future__ import annotations

from difflib import get_close_matches

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ldfi import fit
from ldfi.demo.catalogue import ADJECTIVES, NOUNS
from ldfi.demo.fallback import within

WORDS = [word.lower() for word in (*ADJECTIVES, *NOUNS)]


async def suggest(request: Request) -> Response:
    """Suggest a better spelling of the query; null when there is none."""
    words = request.query_params.get("q", "")
    return JSONResponse({"suggestion": await within(corrected(words), None)})


@fit.point("function", "corrected")
async def corrected(words: str) -> str | None:
    """Replace each word by the nearest known one; None when that changes nothing."""
    better = [(get_close_matches(word, WORDS, n=1) or [word])[0] for word in words.lower().split()]
    return None if better == words.lower().split() else " ".join(better)


routes = [Route("/suggest", suggest)]
