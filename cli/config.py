"""``ldfi config``: what the service would run with, and what there is to set."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ldfi.cli.control import AsJson
from ldfi.cli.terminal import columns, console
from ldfi.errors import InvalidConfig, Unreachable

app = typer.Typer(help="The configuration of the service.")


@app.command()
def check(
    connect: Annotated[bool, typer.Option(help="Try the database as well.")] = False,
    as_json: AsJson = False,
) -> None:
    """Validate the configuration and show what is set. Secrets are masked."""
    from ldfi.experiments.cluster.config import Config, origins

    try:
        config = Config.load()
        config.refuse_examples()
    except InvalidConfig as error:
        if as_json:
            typer.echo(json.dumps({"valid": False, "errors": str(error).splitlines()}))
        raise
    if connect:
        _connect(config.database_url.get_secret_value())
    _show(config.shown(), origins(os.environ), as_json)


@app.command("table")
def print_table() -> None:
    """Print every option with variable, default, range and meaning, in Markdown."""
    from ldfi.experiments.cluster.config import table

    typer.echo(table())


def _show(values: dict[str, Any], set_by: dict[str, str], as_json: bool) -> None:
    from ldfi.experiments.cluster.config import variable

    rows = {
        name: {"value": value, "from": set_by.get(name, "default")}
        for name, value in values.items()
    }
    if as_json:
        typer.echo(json.dumps({"valid": True, "options": rows}))
        return
    shown = columns("option", "value", "from")
    for name, row in rows.items():
        if name in set_by:
            value = row["value"]
            shown.add_row(name, value if isinstance(value, str) else json.dumps(value), row["from"])
    console().print(shown if set_by else f"Nothing is set, for instance {variable('tokens')}.")
    console().print("The configuration is valid. Options not shown have their defaults.")


def _connect(url: str) -> None:
    """Reach the database without changing anything. Raises Unreachable."""
    from sqlalchemy import create_engine
    from sqlalchemy.engine import make_url

    from ldfi.experiments.store.database_errors import explained

    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        folder = Path(parsed.database or ".").absolute().parent
        if not os.access(folder, os.W_OK):
            raise Unreachable(f"the folder of the database, {folder}, cannot be written to")
        return
    engine = create_engine(parsed, connect_args={"connect_timeout": 5})
    try:
        with explained(url):
            engine.connect().close()
    finally:
        engine.dispose()
