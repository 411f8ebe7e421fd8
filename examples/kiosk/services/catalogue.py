"""What is for sale, with requests: from the shelves, and where they do not answer from the cellar.

Planted: of the cellar it looks at answers, and catches nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from typing import Any

import requests
from opentelemetry.instrumentation.requests import RequestsInstrumentor
from opentelemetry.instrumentation.wsgi import OpenTelemetryMiddleware
from switch import said, serve
from telemetry import set_up

PATIENCE = float(os.environ["PATIENCE"])
RequestsInstrumentor().instrument(tracer_provider=set_up())


def asked(service: str) -> requests.Response:
    with requests.Session() as session:
        session.trust_env = False
        return session.get(f"{os.environ[service.upper()]}/papers", timeout=PATIENCE)


def papers() -> Any:
    try:
        answer = asked("shelves")
        if answer.ok:
            return answer.json()
    except requests.RequestException:
        pass
    answer = asked("cellar")
    return answer.json() if answer.ok else "none left"


def answer(_environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    return said(start, json.dumps(papers()).encode())


if __name__ == "__main__":
    serve(OpenTelemetryMiddleware(answer))
