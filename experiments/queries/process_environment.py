"""Writes what each process of an installation must be told: variables and lines for a shell."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

STARTED: Final = {
    "Python": "opentelemetry-instrument python app.py",
    "Node": "node --import ldfi-fit/register --import ./tracing.js app.js",
    "Java": "java -javaagent:opentelemetry-javaagent.jar"
    " -Dotel.javaagent.extensions=ldfi-fit.jar -jar app.jar",
}
"""How a service is started with what it is told, by language. Go's says it in its code."""

WRAPPED: Final = {
    "FastAPI, Starlette, Django (ASGI)": "app = fit.EdgeMiddleware(app)",
    "Flask": "app.wsgi_app = fit.WSGIEdgeMiddleware(app.wsgi_app)",
    "Django (WSGI)": "application = fit.WSGIEdgeMiddleware(application)",
}
"""The one line of an edge in Python, where the application is complete, by framework."""


def blocks(url: str) -> dict[str, dict[str, str]]:
    """List what each kind of process must be told; secrets as `${NAME}`. ``url``: of the service,
    as they reach it."""
    service = {
        "FIT_KEYS": "${FIT_KEYS}",
        "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20${INGEST_TOKEN}",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_PROPAGATORS": "tracecontext,baggage",
    }
    return {
        "ldfi": {name: f"${{{name}}}" for name in ("LDFI_TOKENS", "LDFI_MEMBER_KEY")},
        "services": service,
        "edge": {**service, "LDFI_URL": url, "LDFI_TOKEN": "${EDGE_TOKEN}"},
    }


def as_shell(file: Path, told: Mapping[str, Mapping[str, str]], *, serving: bool = True) -> str:
    """Write the blocks for shells in which the file was read. ``serving``: the service's, too."""
    own = [each for each in told["edge"].items() if each not in told["services"].items()]
    path = str(file) if os.sep in str(file) else f"./{file}"  # or a shell looks for it in PATH
    service = ["# The service. It says where its pages are.", "ldfi serve", ""]
    return "\n".join(
        [
            "# In every shell that starts one of these, first:",
            f"set -a; . {shlex.quote(path)}; set +a",
            "",
            *(service if serving else []),
            "# Each service under test, the edge too:",
            *(_export(*each) for each in told["services"].items()),
            "# and in Python, so that requests under experiment are kept:",
            _export("OTEL_TRACES_SAMPLER", "fit"),
            "",
            "# The edge, the first service that a request reaches, besides:",
            *(_export(*each) for each in own),
            "",
            "# So told, a service is started with:",
            *(f"#   {language}: {command}" for language, command in STARTED.items()),
            "# and the edge has one line more, after `from ldfi import fit`:",
            *(f"#   {framework}: {line}" for framework, line in WRAPPED.items()),
        ]
    )


def _export(name: str, value: str) -> str:
    return f'export {name}="{value}"'
