"""``ldfi serve``: API, ingest and scheduler in one process."""

from __future__ import annotations

import logging
import secrets
from pathlib import Path
from typing import Annotated

import typer
import uvicorn
from rich.console import Console

from experiments.api.app import create_app
from experiments.api.auth import Tokens
from experiments.cli.processes import end_with_parent


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=0, max=65535)] = 8600,
    database: Annotated[Path, typer.Option(help="SQLite file for the state.")] = Path(
        "ldfi.sqlite3"
    ),
    tokens: Annotated[
        str,
        typer.Option(
            envvar="LDFI_TOKENS",
            help="ROLE:TOKEN,… with roles viewer, operator, admin, ingest, edge. "
            "Without any, an admin token is made and printed.",
            show_default=False,
        ),
    ] = "",
    lease: Annotated[
        float, typer.Option(help="Seconds for which an edge may act without news.", min=1)
    ] = 10.0,
) -> None:
    """Run the service. It needs no other server."""
    try:
        accepted = Tokens(tokens or _made_token())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="LDFI_TOKENS") from error
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    end_with_parent()
    app = create_app(accepted, f"sqlite:///{database}", lease=lease)
    uvicorn.run(app, host=host, port=port, log_level="warning", access_log=False)


def _made_token() -> str:
    token = secrets.token_urlsafe(24)
    Console(stderr=True).print(f"No LDFI_TOKENS given. Admin token for this run: {token}")
    return f"admin:{token}"
