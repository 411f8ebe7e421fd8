"""What an ingest worker answers: whether it lives and works."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

from experiments.streams.ingest import Ingest


def worker_app(ingest: Ingest) -> FastAPI:
    """The application of a process that does nothing but ingest."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/healthz")
    def healthz() -> PlainTextResponse:
        return PlainTextResponse("ok")

    @app.get("/readyz")
    def readyz() -> PlainTextResponse:
        ready = ingest.ready()
        return PlainTextResponse(
            "ready" if ready else "no answer from Kafka", 200 if ready else 503
        )

    return app
