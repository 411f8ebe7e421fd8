"""``ldfi serve``: the service in one process, or in several with a role each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ldfi.experiments.process.role import ProcessRole


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
        ProcessRole,
        typer.Option(
            help="`scheduler`: leads, or stands by until it can. `api`: answers, and passes on "
            "to the leader what only that one can do. `ingest`: reads spans from Kafka. "
            "There may be any number of each."
        ),
    ] = "all",
) -> None:
    """Run the service. It needs no other server. Everything else is set as `ldfi config` says."""
    from ldfi.experiments.cli.serving import run
    from ldfi.experiments.process.config import Config

    run(Config.load(host=host, port=port, database_url=_url(database)), role)


def _url(database: str | None) -> str | None:
    return f"sqlite:///{Path(database)}" if database and "://" not in database else database
