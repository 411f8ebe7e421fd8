"""``ldfi serve``: API, ingest and scheduler in one process."""

from __future__ import annotations

import logging
import os
import secrets
from pathlib import Path
from typing import Annotated, Literal

import typer
import uvicorn
from rich.console import Console

from experiments.api.app import Service, create_app
from experiments.api.auth import Tokens
from experiments.cli.processes import end_with_parent
from experiments.config import Config
from experiments.notify import Slack, Target, Webhook
from experiments.prometheus import Prometheus
from experiments.tracing import traced, wanted


def serve(
    host: Annotated[
        str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on.", min=0, max=65535, show_default="8600")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            help="SQLite file or URL of the state.", show_default="sqlite:///ldfi.sqlite3"
        ),
    ] = None,
    role: Annotated[
        Literal["all", "ingest"],
        typer.Option(help="`ingest`: only a worker that reads Kafka, one of any number."),
    ] = "all",
) -> None:
    """Run the service. It needs no other server. Everything else is set as `ldfi config` says."""
    config = Config.load(host=host, port=port, database_url=_url(database))
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs URLs, and Slack's is a secret
    end_with_parent()
    if role == "ingest":
        from experiments.streams.connect import serve_ingest

        serve_ingest(config)
        return
    app = create_app(service_of(config))
    uvicorn.run(
        traced(app) if wanted(os.environ) else app,
        host=config.host,
        port=config.port,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=3,  # long polls and event streams never end by themselves
    )


def service_of(config: Config) -> Service:
    """What a configuration makes of the service."""
    prometheus = None
    if config.prometheus_url is not None:
        token = config.prometheus_token
        secret = None if token is None else token.get_secret_value()
        prometheus = Prometheus(config.prometheus_url, secret)
    key = config.member_key
    return Service(
        tokens=Tokens(config.tokens.get_secret_value() or _made_token()),
        database=config.database_url.get_secret_value(),
        lease=config.lease,
        quiet=config.quiet,
        limits=config.limits(),
        member_key=key.get_secret_value().encode() if key else secrets.token_bytes(32),
        outcomes=config.outcomes,
        prometheus=prometheus,
        guardrails=config.guardrails,
        targets=tuple(_targets(config)),
        public_url=config.public_url or "",
        trace_url=config.trace_url or "",
    )


def _targets(config: Config) -> list[Target]:
    targets: list[Target] = []
    if config.webhook_url is not None and config.webhook_secret is not None:
        url, secret = config.webhook_url, config.webhook_secret
        targets.append(Webhook(url.get_secret_value(), secret.get_secret_value()))
    if config.slack_url is not None:
        targets.append(Slack(config.slack_url.get_secret_value()))
    return targets


def _url(database: str | None) -> str | None:
    return f"sqlite:///{Path(database)}" if database and "://" not in database else database


def _made_token() -> str:
    token = secrets.token_urlsafe(24)
    Console(stderr=True).print(
        f"No LDFI_TOKENS given. Admin token for this run: {token}", soft_wrap=True, highlight=False
    )
    return f"admin:{token}"
