"""The headers that confine a page: only our own files, no inline script or style, no frames.

Should markup ever get through the templates' escaping, a browser still runs none of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fastapi import Response

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""https://www.w3.org/TR/CSP3/. No ``unsafe-inline``, no ``unsafe-eval``, no other origin."""

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with none at all, forms would be sent with Origin: null
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


def confined(response: Response) -> Response:
    """Add these headers to a response, which is kept nowhere unless it says otherwise."""
    for name, value in HEADERS.items():
        response.headers[name] = value
    response.headers.setdefault("Cache-Control", "no-store")
    return response
