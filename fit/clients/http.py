"""What the HTTP clients have in common: the name of a call."""

from __future__ import annotations

from typing import Any

from opentelemetry import trace

from fit.points import http_point


def name(service: str, method: str, host: str, port: int | None, path: str) -> str:
    """The name of a call, by ``url.template`` where the call's span carries it."""
    attributes: Any = getattr(trace.get_current_span(), "attributes", None)
    template = attributes.get("url.template", "") if attributes else ""
    return http_point(service, method, host, port, path, template)
